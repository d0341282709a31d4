package sim

import (
	"context"
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
	var done atomic.Int64
	total, f := simulate(context.Background(), 1, many(), anySetup, &mutant{}, &done)
	took := time.Since(start)
	t.Logf("%.0f a second: %+v", float64(total.Schedules)/took.Seconds(), total)
	if f != nil {
		t.Fatalf("%v\nto see it: %s", f, f.Command())
	}
}

func TestMutants(t *testing.T) {
	const most = 10_000
	for _, r := range allRules() {
		for _, m := range r.mutants {
			t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
				var done atomic.Int64
				first := max(m.near, 1)
				start := time.Now()
				total, f := simulate(context.Background(), first, most, m.draw, &m, &done)
				if f == nil || f.flaw != m.shows {
					t.Fatalf("not caught in %d schedules: %v (%s)", total.Schedules, f, time.Since(start))
				}
				t.Logf("%.1fs %v", time.Since(start).Seconds(), f)
			})
		}
	}
}

// TestSetups: what schedules of mutants have in common is harmless without the
// mutant.
func TestSetups(t *testing.T) {
	for _, r := range allRules() {
		for _, m := range r.mutants {
			var done atomic.Int64
			_, f := simulate(context.Background(), 1, 60, m.draw, &mutant{scene: m.scene}, &done)
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
			if f := replay(seed, anySetup, &mutant{}, &traces[i]); f != nil {
				t.Fatal(f)
			}
		}
		if traces[0].String() != traces[1].String() {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}
