//go:build linux

package siege

import (
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// id makes an id of the default layout.
func id(tick, worker, seq int64) firn.ID { return firn.ID(tick<<22 | worker<<12 | seq) }

func run1(first firn.ID, n int64) ledger.Run { return ledger.Run{First: first, Count: n} }

func TestCheckPasses(t *testing.T) {
	r := Check(firn.Default(), []Issuer{
		{
			Name: "a",
			Hands: [][]ledger.Run{
				{run1(id(1, 0, 0), 3), run1(id(1, 0, 4), 1), run1(id(2, 0, 0), 4096), run1(id(5, 1, 0), 1)},
				{run1(id(1, 0, 3), 1), run1(id(3, 0, 9), 2)},
			},
			Grants: []Grant{{Worker: 0, Term: 1, Prior: 0, Horizon: 9}, {Worker: 1, Term: 7, Prior: 4, Horizon: 8}},
		},
		{
			Name:   "b",
			Hands:  [][]ledger.Run{{run1(id(4, 0, 0), 5), run1(id(9, 0, 0), 5)}},
			Grants: []Grant{{Worker: 0, Term: 2, Prior: 3, Horizon: 8}, {Worker: 0, Term: 2, Prior: 8, Horizon: 9}},
		},
		{Name: "c", Hands: [][]ledger.Run{{run1(id(1, 5, 0), 5)}}}, // nothing is known of its grants
		{ // the store was put back to a copy that did not know of the first
			Name:   "restored",
			Hands:  [][]ledger.Run{{run1(id(3, 9, 0), 5), run1(id(31, 9, 0), 5)}},
			Grants: []Grant{{Worker: 9, Term: 4, Prior: 0, Horizon: 9}, {Era: 1, Worker: 9, Term: 4, Prior: 30, Horizon: 40}},
		},
		{Name: "d", Grants: []Grant{{Worker: 3, Term: 1, Prior: 7, Horizon: 9}}, Heirs: "file"},
		{
			Name: "e", Heirs: "file",
			Hands:  [][]ledger.Run{{run1(id(8, 3, 0), 5), run1(id(15, 3, 0), 5)}},
			Grants: []Grant{{Worker: 3, Term: 1, Prior: -1, Horizon: 20}},
		},
		{Name: "f", Heirs: "file", Hands: [][]ledger.Run{{run1(id(16, 3, 0), 5)}}, Grants: []Grant{}}, // it never reached the store
	})
	if len(r.Problems) > 0 || r.Repeated > 0 {
		t.Errorf("%v: %q", r, r.Problems)
	}
	if r.IDs != 3+1+4096+1+1+2+5+5+5+5+5+10+5 || r.Workers != 4 || r.Terms != 6 {
		t.Errorf("got %v", r)
	}
}

// The checker finds what is planted.
func TestCheckFails(t *testing.T) {
	all := []Grant{{Worker: 0, Term: 1, Prior: 0, Horizon: 100}}
	for _, tt := range []struct {
		name     string
		issuers  []Issuer
		repeated int64
		want     string
	}{
		{"one id, two processes", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(1, 0, 0), 4096), run1(id(2, 0, 0), 4096)}}},
			{Name: "b", Hands: [][]ledger.Run{{run1(id(2, 0, 77), 1)}}},
		}, 1, "was issued by a hand 0 and by b hand 0"},
		{"one id, two hands", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(1, 0, 0), 10)}, {run1(id(1, 0, 9), 2)}}, Grants: all},
		}, 1, "was issued by a hand 0 and by a hand 1"},
		{"one id, one hand", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(1, 0, 0), 10), run1(id(1, 0, 9), 2)}}, Grants: all},
		}, 1, "after"},
		{"a run in a run", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(1, 0, 0), 4096)}}},
			{Name: "b", Hands: [][]ledger.Run{{run1(id(1, 0, 5), 2), run1(id(1, 0, 100), 3)}}},
		}, 5, "was issued by"},
		{"back in time", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(2, 0, 0), 1), run1(id(1, 0, 0), 1)}}, Grants: all},
		}, 0, "after id"},
		{"below its base", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(5, 0, 0), 1)}}, Grants: []Grant{{Worker: 0, Term: 3, Prior: 5, Horizon: 9}}},
		}, 0, "lies in no term"},
		{"above its horizon", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(10, 0, 0), 1)}}, Grants: []Grant{{Worker: 0, Term: 3, Prior: 5, Horizon: 9}}},
		}, 0, "lies in no term"},
		{"without a grant", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(6, 0, 0), 1)}}, Grants: []Grant{}},
		}, 0, "lies in no term"},
		{"with another's worker", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(6, 1, 0), 1)}}, Grants: []Grant{{Worker: 0, Term: 3, Prior: 5, Horizon: 9}}},
			{Name: "b", Grants: []Grant{{Worker: 1, Term: 3, Prior: 5, Horizon: 9}}},
		}, 0, "lies in no term"},
		{"above the next holder's base", []Issuer{
			{Name: "a", Hands: [][]ledger.Run{{run1(id(7, 0, 0), 1)}}, Grants: []Grant{{Worker: 0, Term: 3, Prior: 5, Horizon: 9}}},
			{Name: "b", Grants: []Grant{{Worker: 0, Term: 4, Prior: 6, Horizon: 20}}},
		}, 0, "lies in no term"},
		{"one term, two holders", []Issuer{
			{Name: "a", Grants: all},
			{Name: "b", Grants: all},
		}, 0, "granted to both a and b"},
		{"a heir below the base", []Issuer{
			{Name: "a", Heirs: "file", Grants: []Grant{{Worker: 0, Term: 3, Prior: 50, Horizon: 90}}},
			{Name: "b", Heirs: "file", Hands: [][]ledger.Run{{run1(id(50, 0, 0), 1)}}, Grants: []Grant{{Worker: 0, Term: 3, Prior: -1, Horizon: 99}}},
		}, 0, "lies in no term"},
		{"no heir", []Issuer{
			{Name: "a", Heirs: "file", Grants: []Grant{{Worker: 0, Term: 3, Prior: 50, Horizon: 90}}},
			{Name: "b", Heirs: "another", Grants: []Grant{{Worker: 0, Term: 3, Prior: -1, Horizon: 99}}},
		}, 0, "granted to both a and b"},
		{"a restored store that grants again what it forgot", []Issuer{
			{Name: "a", Grants: []Grant{{Worker: 0, Term: 3, Prior: 50, Horizon: 90}}},
			{Name: "b", Grants: []Grant{{Era: 1, Worker: 0, Term: 3, Prior: 40, Horizon: 90}}},
		}, 0, "begins above"},
		{"a horizon that fell", []Issuer{
			{Name: "a", Grants: []Grant{{Worker: 0, Term: 3, Prior: 50, Horizon: 90}}},
			{Name: "b", Grants: []Grant{{Worker: 0, Term: 4, Prior: 40, Horizon: 90}}},
		}, 0, "begins above"},
	} {
		r := Check(firn.Default(), tt.issuers)
		if !strings.Contains(strings.Join(r.Problems, "\n"), tt.want) || r.Repeated != tt.repeated {
			t.Errorf("%s: got %v, %q", tt.name, r, r.Problems)
		}
	}
}

// A process that a busy machine leaves waiting says late what it was granted.
func TestValid(t *testing.T) {
	w := &world{eras: []era{{begun: 10, forgot: 20, cured: 30, tick: 100}}}
	for _, tt := range []struct {
		name        string
		asked, boot int64
		horizon     firn.Tick
		valid       bool
	}{
		{"before the loss", 5, 8, 90, true},
		{"before the loss, said while the store has forgotten", 5, 25, 90, true},
		{"before the loss, said after the cure", 5, 40, 90, true},
		{"of a store that has forgotten", 22, 25, 90, false},
		{"of a store that has forgotten, said after the cure", 22, 40, 90, false},
		{"asked before the store was there again", 12, 40, 90, false},
		{"of the pool made meanwhile", 25, 28, 110, true},
		{"after the cure", 35, 40, 110, true},
	} {
		got := w.valid([]Grant{{Worker: 3, Term: 1, Prior: 7, Horizon: tt.horizon, asked: tt.asked, boot: tt.boot}})
		if (len(got) == 1) != tt.valid {
			t.Errorf("%s: valid %v", tt.name, !tt.valid)
		}
	}
}
