package daemon

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// What the API says of a lease has both numbers of a worker, where the layout has two fields.
func TestLeaseStateFields(t *testing.T) {
	t.Parallel()
	s := memory.New()
	if _, err := pool.Create(t.Context(), s, pool.Default, &pool.Options{Layout: firn.MustLayout("twitter")}); err != nil {
		t.Fatal(err)
	}
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(3, 7)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	text, err := json.Marshal(leaseState(l, "memory:"))
	if err != nil || !strings.Contains(string(text), `"workers":[103]`) || !strings.Contains(string(text), `"fields":[{"datacenter":3,"worker":7}]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A new lease of the worker that an old one holds is noticed, whichever way the worker is written.
func TestClashOfFields(t *testing.T) {
	t.Parallel()
	supply := func(c lease.Choice, layout firn.Layout) *supply {
		leasing := &config.Leasing{Pool: "web", Options: config.LeaseOptions{Options: lease.Options{Choice: c}}}
		s := newSupply(&outlet{Series: &config.Series{Kind: config.Flake, URLs: []string{"x"}, Leasing: leasing}}, slog.New(slog.DiscardHandler))
		s.now.Store(&flowing{layout: layout})
		return s
	}
	twitter := firn.MustLayout("twitter")
	for _, tt := range []struct {
		a, b lease.Choice
		want bool
	}{
		{lease.Only(3, 7), lease.Only(103), true},
		{lease.Only(103), lease.Only(3, 7), true},
		{lease.Only(3, 7), lease.Only(3, 7), true},
		{lease.Only(3, 7), lease.Only(7, 3), false},
		{lease.Only(3, 7), lease.Prefer(103), false},
	} {
		if got := supply(tt.a, twitter).clashes(supply(tt.b, twitter)); got != tt.want {
			t.Errorf("%+v and %+v: %t", tt.a, tt.b, got)
		}
	}
}
