package dated

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// mutants are the rules that keep texts from being repeated and dates right, each
// broken around the drawer. A simulated year has to notice.
var mutants = []setup{
	{lost: 60, mutant: mutant{
		name: "a write whose outcome is unknown counts as done",
		answer: func(_ *world, _ *process, do Action, a record.Answer) record.Answer {
			if do.Op == record.Put && a.Err != nil && a.Record.Version != "" {
				a.Err = nil
			}
			return a
		},
	}},
	{lost: 60, mutant: mutant{
		name: "a conflict counts as done",
		answer: func(_ *world, _ *process, do Action, a record.Answer) record.Answer {
			if do.Op == record.Put && a.Err == store.ErrConflict {
				a.Err = nil
			}
			return a
		},
	}},
	{lost: 60, mutant: mutant{
		name: "what was granted to another is taken for the own write, since it says the same",
		answer: func(_ *world, p *process, do Action, a record.Answer) record.Answer {
			var c Counter
			switch {
			case do.is == toGrant && a.Err != nil && a.Record.Version != "":
				p.lost, p.tried = do.grant.span("s"), a.Record.Version
			case do.is == toRead && p.d.own.InDoubt() && do.Key == p.lost.Key && json.Unmarshal(a.Record.Value, &c) == nil && c.Count == p.lost.To:
				a.Record.Version = p.tried
			}
			return a
		},
	}},
	{mutant: mutant{
		name: "counters are written without being compared",
		action: func(w *world, _ *process, do Action) Action {
			if do.Op == record.Put {
				do.Cond.Version = w.records[do.Key].Version
			}
			return do
		},
	}},
	{stepped: true, mutant: mutant{
		name: "a counter is removed when another period begins",
		stored: func(w *world, key string) {
			for other := range w.records {
				if strings.Contains(other, "/2") && other != key && key != Key("s") {
					delete(w.records, other)
				}
			}
		},
	}},
	{stepped: true, mutant: mutant{
		name: "the store's clock is not looked at after a write",
		answer: func(_ *world, _ *process, do Action, a record.Answer) record.Answer {
			if do.Op == record.Put {
				a.Record.Written = time.Time{}
			}
			return a
		},
	}},
	{lossy: true, lost: 30, raise: 40, mutant: mutant{
		name: "the instance is the one that was",
		answer: func(_ *world, p *process, do Action, a record.Answer) record.Answer {
			if do.is == toProve {
				a.Durability.Instance = p.d.def.Instance
			}
			return a
		},
	}},
	{lossy: true, lost: 30, raise: 40, mutant: mutant{
		name: "the instance is looked at before the write, and not after",
		answer: func(w *world, p *process, do Action, a record.Answer) record.Answer {
			if do.is == toProve && p.d.proof.Left() > 0 {
				a.Durability.Instance = p.before
			}
			return a
		},
		action: func(w *world, p *process, do Action) Action {
			if do.Op == record.Put {
				p.before = w.durability().Instance
			}
			return do
		},
	}},
	{lossy: true, lost: 30, raise: 0, mutant: mutant{name: "a restoration raises nothing"}},
	{lossy: true, lost: 30, raise: 40, mutant: mutant{
		name: "a counter that was forgotten is not raised",
		stored: func(w *world, key string) {
			if rec := w.records[key]; key == Key("s") {
				def, err := record.Read[Definition](rec)
				if err != nil {
					panic(err)
				}
				for i := range def.Raised {
					def.Raised[i].Through = ""
				}
				rec.Value = record.Encode(def)
				w.records[key] = rec
			}
		},
	}},
}

func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.mutant.name, func(t *testing.T) {
			t.Parallel()
			if !slices.ContainsFunc(years, func(y setup) bool { return caught(m, y) }) {
				t.Error("nothing was noticed")
			}
		})
	}
}

func caught(m, year setup) bool {
	for seed := range uint64(3) {
		s := m
		s.zone, s.from = year.zone, year.from
		s.pattern, s.days, s.calls, s.procs, s.step, s.clock = "INV-{yyyyMMdd}-{6}", 365, 12, 3, 1, true
		w := newWorld(s, seed)
		w.play()
		if len(w.faults) > 0 {
			return true
		}
	}
	return false
}
