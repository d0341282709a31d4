//go:build linux && (amd64 || arm64)

package page

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
)

// What a page that was damaged says does not depend on who looks first: the lease, which extends it, or Serve.
func TestDamageIsRemembered(t *testing.T) {
	h := &pagefile.Header{}
	if err := h.SetLayout(firn.MustLayout("firn"), 7, 0, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	h.Base = h.Last(1000)
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{header: h, bytes: b, memory: make(mapped, pagefile.Size)}
	copy(s.memory, b)
	s.agent = pagefile.NewAgent(h, s.memory, 2000)
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	s.memory.Store(pagefile.Number, 0)
	s.Extend(3000)
	if got := s.memory.Load(pagefile.Horizon); got != h.Last(2000) {
		t.Errorf("the horizon of a damaged page rose to %d", got)
	}
	for range 2 {
		if err := s.check(); err == nil || !strings.Contains(err.Error(), "lowered") {
			t.Errorf("%v, want that its word was lowered", err)
		}
	}
}
