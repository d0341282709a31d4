package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// A process that knows that its outage budget is longer than others reckon with says so in the
// commands that its errors and logs name: otherwise the ids of the next pool start too early.
func TestHintsHaveTheOutage(t *testing.T) {
	_, err := Open(t.Context(), remote{memory.New()}, &Options{Outage: 10 * time.Minute})
	if err == nil || !strings.HasSuffix(err.Error(), "firn pool ensure default --store URL --outage 10m") {
		t.Error(err)
	}
	_, err = Open(t.Context(), remote{memory.New()}, nil)
	if err == nil || !strings.Contains(err.Error(), "add --outage if any process of the pool had an outage budget of more than 5 min") {
		t.Error(err)
	}
	lost := &store.ForgotError{Store: "pool default", What: "its record is missing"}
	if text := recovery(lost, time.Hour); !strings.Contains(text, "firn store recover --store URL --outage 1h (") {
		t.Error(text)
	}
	if text := recovery(lost, time.Minute); !strings.Contains(text, "firn store recover --store URL (add --outage if any") {
		t.Error(text)
	}
}
