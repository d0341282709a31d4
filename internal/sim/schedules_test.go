package sim

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
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

// TestWrong makes sure that the checker sees what a store or an operator does wrong.
func TestWrong(t *testing.T) {
	for _, d := range wrongs {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			total, f := simulate(t.Context(), 1, 10_000, each(d.draw), new(atomic.Int64))
			if f == nil {
				t.Fatalf("not seen in %d schedules", total.Schedules)
			}
			t.Log(f)
		})
	}
}

// TestBelowTheFloor: a large pool below a floor that is far ahead, as a restore leaves
// it, is not searched again and again.
func TestBelowTheFloor(t *testing.T) {
	rules := defaultRules(clocked, layouts[2])
	w := newWorld(1, func(uint64, *rand.Rand) setup {
		return setup{kind: clocked, leases: true, rules: rules, workers: rules.Layout.Workers() /* looked up at random, not listed */, pools: 1, procs: 2, fast: time.Millisecond, issues: time.Second, founded: true, maxSpeed: 20}
	})
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

// TestDraws: nothing goes wrong in any situation. make full has more of each.
func TestDraws(t *testing.T) {
	n := 20
	if testserver.Long() {
		n = 60
	}
	for _, d := range draws {
		if _, f := simulate(t.Context(), 1, n, each(d.draw), new(atomic.Int64)); f != nil {
			t.Errorf("%s: %v", d.name, f)
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
