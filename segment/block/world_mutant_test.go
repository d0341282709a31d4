package block_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/segment/block"
	"github.com/firn-id/firn/store"
)

// A mutant breaks one rule, around the machine: in the driver, the store, or what
// an operator does. The zero mutant breaks none.
type mutant struct {
	name   string
	lossy  bool // it shows on a lossy store,
	goBack bool // or when one is restored,
	strict bool // or on one that never forgets

	event         func(*process, block.Event) block.Event   // what the machine is told
	put           func(*process, block.Action) block.Action // what is written
	blind         func(*world, block.Action) bool           // whether the store ignores the version
	unacked       bool                                      // numbers are used before they are acknowledged
	openBack      bool                                      // numbers are used after they were handed back
	unraised      bool                                      // a restored store is not raised
	countVersions bool
}

var mutants = []mutant{
	{
		name: "a write is known by its value", strict: true,
		event: func(p *process, e block.Event) block.Event {
			found, ok := e.(block.Found)
			if !ok {
				return e
			}
			r, _ := block.Read(found.Record)
			if p.put.ID != "" && r.Granted == p.put.Granted {
				if v, doubt := p.s.Doubt(); doubt {
					found.Record.Version = v
				}
			}
			return found
		},
	},
	{name: "a tail is handed back while numbers are used", strict: true, openBack: true},
	{
		name: "a tail is handed back whoever has written since", strict: true,
		blind: func(w *world, do block.Action) bool {
			r, _ := block.Read(store.Record{Version: "?", Value: do.Value})
			return r.Granted < w.counter().Granted
		},
	},
	{
		name: "a tail is handed back down to an older grant", strict: true,
		put: func(p *process, do block.Action) block.Action {
			if p.closed && p.used > 0 && p.put.Granted < p.s.Have.Granted {
				p.put.Granted = p.used
				do.Value = p.put.Encode()
			}
			return do
		},
	},
	{
		name: "numbers are used before they are acknowledged", strict: true, unacked: true,
		put: func(p *process, do block.Action) block.Action {
			if n := p.put.Granted - p.s.Have.Granted; n > 0 {
				stride := p.put.Stride()
				p.hand = append(p.hand, &hand{Grant: block.Grant{First: p.s.Have.Granted + stride, Count: n / stride, Stride: stride}})
			}
			return do
		},
	},
	{
		name: "a conflict is taken for success", strict: true,
		event: func(p *process, e block.Event) block.Event {
			if _, ok := e.(block.Conflict); ok && !p.closed {
				return block.Wrote{Record: store.Record{Key: key, Version: "?"}}
			}
			return e
		},
	},
	{
		name: "a Put ignores the version", strict: true,
		blind: func(*world, block.Action) bool { return true },
	},
	{
		name: "the instance is not looked at", lossy: true,
		event: func(p *process, e block.Event) block.Event {
			if heard, ok := e.(block.Promised); ok {
				heard.Promise.Instance = p.s.Have.Instance
				return heard
			}
			return e
		},
	},
	{
		name: "the instance is looked at before the Put", lossy: true,
		event: func(p *process, e block.Event) block.Event {
			if _, ok := e.(block.Promised); ok {
				return block.Promised{Promise: p.promised}
			}
			return e
		},
	},
	{name: "a restored store is not raised", goBack: true, unraised: true},
	{name: "versions are counts", goBack: true, countVersions: true},
}

var (
	count = flag.Uint64("schedules", 2000, "how many schedules to simulate")
	only  = flag.Uint64("seed", 0, "simulate this schedule only, and tell of it")
)

// TestWorld: whatever happens, no number is issued twice.
func TestWorld(t *testing.T) {
	first, last := uint64(1), *count
	if *only != 0 {
		first, last = *only, *only
	}
	drawn, kinds := 0, map[string]int{}
	for seed := first; seed <= last; seed++ {
		w := newWorld(seed, &mutant{})
		if *only != 0 {
			w.log = t.Logf
		}
		w.run()
		for _, r := range w.repeats {
			t.Fatalf("seed %d: repeated %s", seed, r)
		}
		if w.kinds["forgot"] == 0 && w.kinds["noticed"] > 0 {
			t.Fatalf("seed %d: a process stopped, and nothing was forgotten", seed)
		}
		drawn += w.drawn
		for k, v := range w.kinds {
			kinds[k] += v
		}
	}
	t.Logf("%d schedules, %d numbers, %v", last-first+1, drawn, kinds)
	if *only != 0 {
		return
	}
	for _, k := range []string{"crash", "close", "conflict", "forgot", "noticed", "*block.ExhaustedError"} {
		if kinds[k] == 0 {
			t.Errorf("there was never a %s", k)
		}
	}
}

// TestMutants makes sure that the simulation finds what it is there for.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			const most = 5_000
			for seed := uint64(1); seed <= most; seed++ {
				w := newWorld(seed, &m)
				w.run()
				if len(w.repeats) > 0 {
					t.Logf("seed %d: %s", seed, w.repeats[0])
					return
				}
			}
			t.Errorf("not caught in %d schedules", most)
		})
	}
}

// A seed says everything.
func TestWorldIsDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		var runs [2]string
		for i := range runs {
			w := newWorld(seed, &mutant{})
			w.run()
			runs[i] = fmt.Sprint(w.drawn, w.kinds, string(w.record.value))
		}
		if runs[0] != runs[1] {
			t.Fatalf("seed %d: %s and %s", seed, runs[0], runs[1])
		}
	}
}
