package sim

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// few is how many schedules are simulated where nobody says how many.
const few = 3000

// many is FIRN_SCHEDULES, or few.
func many() int {
	if n, err := strconv.Atoi(os.Getenv("FIRN_SCHEDULES")); err == nil {
		return n
	}
	return few
}

// TestSchedules simulates what can go wrong, and looks whether an id or a number
// is repeated, or a process left without. One seed is one schedule.
func TestSchedules(t *testing.T) {
	start := time.Now()
	total, f := simulate(t.Context(), 1, many(), product, new(atomic.Int64))
	if err := total.Write(t.Output(), time.Since(start)); err != nil {
		t.Error(err)
	}
	if f != nil {
		t.Fatalf("%v\nto see it: %s", f, f.Command())
	}
}

// TestMutants makes sure that the simulation finds what it is there for: each rule,
// broken, is caught.
func TestMutants(t *testing.T) {
	const most = 10_000
	names := map[string]bool{}
	for _, r := range allRules() {
		if r.says == "" || len(r.mutants) == 0 {
			t.Errorf("rule %q has no mutant", r.says)
		}
		for _, m := range r.mutants {
			if names[m.name] || m.name == "" {
				t.Errorf("mutant %q is there twice", m.name)
			}
			names[m.name] = true
			t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
				total, f := simulate(t.Context(), 1, most, each(m.draw, &m), new(atomic.Int64))
				switch {
				case f == nil:
					t.Errorf("not caught in %d schedules", total.Schedules)
				case f.flaw != m.shows:
					t.Errorf("caught by something else than %s: %v", m.shows, f)
				default:
					t.Logf("%s: %v", r.says, f)
				}
			})
		}
	}
}

// TestBelowTheFloor: a large pool below a floor that is far ahead, as a restore leaves
// it, is not searched again and again.
func TestBelowTheFloor(t *testing.T) {
	rules := defaultRules(clocked, layouts[2])
	w := newWorld(1, func(*rand.Rand) setup {
		return setup{kind: clocked, leases: true, rules: rules, workers: rules.Layout.Workers() /* looked up at random, not listed */, pools: 1, procs: 2, fast: time.Millisecond, issues: time.Second, founded: true, maxSpeed: 20}
	}, &mutant{})
	w.store.found()
	w.restore(1, false)
	for w.cutOff {
		w.until(w.now + time.Millisecond)
	}
	for _, p := range w.procs {
		p.boot()
	}
	w.until(w.now + time.Minute)
	if w.failure != nil {
		t.Error(w.failure)
	}
}

// TestSetups: what schedules of mutants have in common is harmless without the
// mutant.
func TestSetups(t *testing.T) {
	for _, r := range allRules() {
		for _, m := range r.mutants {
			_, f := simulate(t.Context(), 1, 60, each(m.draw, &mutant{scene: m.scene}), new(atomic.Int64))
			if f != nil {
				t.Errorf("%s: %v", m.name, f)
			}
		}
	}
}

// TestDeterminism: a seed says everything.
func TestDeterminism(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		var traces [2]strings.Builder
		for i := range traces {
			if f := replay(seed, product, &traces[i]); f != nil {
				t.Fatal(f)
			}
		}
		if traces[0].String() != traces[1].String() {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}
