package term_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

var (
	schedules = flag.Int("term.schedules", schedulesFromEnv(), "how many schedules to simulate; or FIRN_SCHEDULES")
	fromSeed  = flag.Uint64("term.from", 1, "the seed of the first one")
	onlySeed  = flag.Uint64("term.seed", 0, "run only the schedule of this seed, and print it")
)

// short is how many schedules are simulated where nobody says how many.
const short = 2000

func schedulesFromEnv() int {
	if n, err := strconv.Atoi(os.Getenv("FIRN_SCHEDULES")); err == nil {
		return n
	}
	return short
}

// Layouts with ticks from the shortest to the longest.
var layouts = []firn.Layout{
	firn.MustLayout("time:52@1us,worker:6,seq:5;epoch=2025-01-01T00:00:00Z"),
	firn.Default,
	firn.MustLayout("time:39@10ms,seq:8,worker:16;epoch=2025-01-01T00:00:00Z"),
	firn.MustLayout("time:32@1s,worker:12,seq:19;epoch=2025-01-01T00:00:00Z"),
	firn.MustLayout("time:20@1h,worker:10,seq:33;epoch=2025-01-01T00:00:00Z"),
}

// anySetup draws what a schedule is made of.
func anySetup(rng *rand.Rand) setup {
	return drawSetup(rng, pick(rng, clocked, clocked, clocked, blind, embedded, lossy, lossy, lossyBlind, shifting, shifting))
}

func drawSetup(rng *rand.Rand, kind storeKind) setup {
	layout := pick(rng, layouts...)
	r := defaultRules(kind, layout)
	drawRules(rng, &r)
	if kind == shifting || kind.lossy() && rng.IntN(2) == 0 { // the same in less time
		quick(&r)
		r.Skew = pick(rng, 200*time.Millisecond, time.Second)
		r.Outage = pick(rng, time.Second, 3*time.Second, 6*time.Second)
	}
	s := setup{
		kind: kind, rules: r, procs: pick(rng, 2, 2, 3, 3, 4, 4, 6, 8), founded: rng.Float64() < 0.9, known: rng.IntN(2) == 0,
		fast:  pick(rng, 2*time.Millisecond, 20*time.Millisecond, 500*time.Millisecond),
		lasts: pick(rng, 5*time.Second, 10*time.Second, 20*time.Second, time.Minute),
		every: pick(rng, 300*time.Millisecond, time.Second, 4*time.Second),
		lives: rng.IntN(8) == 0,
	}
	switch rng.IntN(100) {
	case 0:
		s.lasts, s.every, s.lives = 10*time.Minute, 5*time.Second, true
	case 1:
		s.lasts, s.every = 30*time.Minute, 20*time.Second
	}
	if kind.lossy() { // a new holder waits before it issues
		s.lasts = s.quarantine() + pick(rng, 10*time.Second, 20*time.Second, time.Minute)
		s.every = pick(rng, time.Second, 3*time.Second, 6*time.Second)
	}
	if s.fast > 100*time.Millisecond {
		s.rules.Wait, s.rules.Renew = max(s.rules.Wait, 2*time.Second), max(s.rules.Renew, 2*time.Second)
		s.rules.TTL = max(s.rules.TTL, 2*s.rules.Renew)
		s.rules.Outage = max(s.rules.Outage, 6*time.Second)
	}
	s.faults = drawFaults(rng, kind)
	s.unequal = s.founded && rng.IntN(3) == 0
	if r.Layout.Unit() == time.Hour && rng.IntN(4) == 0 { // long enough to see ticks pass
		scale(&s.rules, 60)
		s.lasts, s.every, s.lives = pick(rng, time.Hour, 2*time.Hour), pick(rng, 10*time.Second, time.Minute), false
		s.procs, s.rules.Workers = 2, 1+rng.Int64N(3)
	}
	s.timing()
	return s
}

// defaultRules are those of a member where the store is of a kind.
func defaultRules(kind storeKind, layout firn.Layout) term.Rules {
	r := term.Default("pool", layout, store.Promise{Embedded: kind == embedded})
	r.Outage = term.OutageStrict
	if kind.lossy() {
		r.Outage = term.OutageLossy
	}
	return r
}

// quarantine is for how long a new holder waits at most.
func (s *setup) quarantine() time.Duration {
	if s.kind.lossy() {
		return s.rules.Outage + 2*s.rules.Skew
	}
	return 0
}

// drawRules varies the rules of a pool.
func drawRules(rng *rand.Rand, r *term.Rules) {
	r.Workers = 1 + rng.Int64N(4)
	switch rng.IntN(10) {
	case 0:
		r.First = 2
	case 1:
		if r.Layout.Workers() > 4096 { // looked up at random, not listed
			r.Workers = r.Layout.Workers()
		}
	}
	if rng.IntN(2) == 0 {
		r.Outage = pick(rng, time.Second, 3*time.Second, 20*time.Second, time.Minute)
	}
	if rng.IntN(3) == 0 {
		r.Renew = pick(rng, 500*time.Millisecond, 2*time.Second, 5*time.Second)
		r.TTL = r.Renew * time.Duration(2+rng.IntN(3))
	}
	if rng.IntN(3) == 0 {
		r.Wait = pick(rng, 100*time.Millisecond, time.Second, 20*time.Second)
	}
	r.Look = pick(rng, time.Second, 5*time.Second, time.Minute)
	if rng.IntN(3) == 0 {
		r.Borrow = pick(rng, 0, time.Second)
	}
}

// drawFaults chooses kinds of fault: a schedule that has few of them goes deeper.
func drawFaults(rng *rand.Rand, kind storeKind) faults {
	some := func() bool { return rng.IntN(2) == 0 }
	f := faults{
		network: some(), loss: pick(rng, 0.02, 0.1, 0.4), pauses: some(), kills: some(), closes: some(),
		clocks: some(), cuts: some(), release: some(),
		files: rng.IntN(4) == 0, choices: rng.IntN(5) == 0,
	}
	switch {
	case kind == shifting:
		f.forget, f.shift, f.takes = true, true, pick(rng, 0, 0, 0.3)
		f.restore = rng.IntN(4) == 0
	case kind.lossy():
		f.forget, f.takes = rng.IntN(4) > 0, pick(rng, 0, 0, 0.3)
	default:
		f.restore = rng.IntN(3) == 0
		f.remove = kind == embedded && rng.IntN(4) == 0
	}
	return f
}

// quick rules let a new holder come and issue after little time.
func quick(r *term.Rules) {
	r.Reach, r.Renew, r.TTL, r.Wait = 2*time.Second, 2*time.Second, 6*time.Second, 7*time.Second
	r.Outage = 6 * time.Second
}

// scale makes everything in a pool slower.
func scale(r *term.Rules, by time.Duration) {
	for _, d := range []*time.Duration{&r.Reach, &r.Outage, &r.Renew, &r.TTL, &r.Skew, &r.Wait, &r.Look} {
		*d *= by
	}
}

// timing works out what follows from the rest of a setup.
func (s *setup) timing() {
	r := &s.rules
	s.issues = s.every / 2
	s.long = 2 * (r.Outage + s.quarantine())
	s.grace = r.Wait + r.TTL + s.quarantine() + lapse + 4*ask
	if s.kind.lossy() {
		s.grace += 2 * r.Skew
	}
	s.maxSpeed = 4
	if r.Workers > 4096 {
		s.maxSpeed = 100
	}
}

// simulate runs n schedules, of the seeds from first on, on all processors and
// returns the seed of the first that fails, and how. With a mutant it is the
// first that repeats an id.
func simulate(first uint64, n int, draw func(*rand.Rand) setup, m mutant) (done total, seed uint64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // there is little to keep
	var (
		mu   sync.Mutex
		next atomic.Uint64
		wait sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				at := first + next.Add(1) - 1
				mu.Lock()
				enough := at-first >= uint64(n) || err != nil && at > seed
				mu.Unlock()
				if enough {
					return
				}
				w := newWorld(at, draw, m)
				failure := w.run()
				mu.Lock()
				done.add(w)
				if failure != nil && (err == nil || at < seed) {
					seed, err = at, failure
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return done, seed, err
}

// A total counts what schedules were made of.
type total struct {
	schedules, ids, steps, requests, generators, restores, repeats int
	lasted                                                         time.Duration
}

func (t *total) add(w *world) {
	t.schedules++
	t.ids += w.check.ids
	t.steps += w.steps
	t.requests += w.requests
	t.generators += w.check.generators
	t.restores += w.restores
	t.repeats += w.check.repeats
	t.lasted += w.now
}

// TestSchedules simulates what can go wrong with leases, and looks whether an id
// is repeated or a process left without a worker. One seed is one schedule.
func TestSchedules(t *testing.T) {
	if *onlySeed != 0 {
		replay(t, *onlySeed, anySetup, mutant{})
		return
	}
	n := *schedules
	if testing.Short() {
		n = min(n, 500)
	}
	start := time.Now()
	done, seed, err := simulate(*fromSeed, n, anySetup, mutant{})
	took := time.Since(start)
	t.Logf("%d schedules in %s, %.0f a second: %.1f years, %d grants, %d ids, %d steps, %d requests, %d restores",
		done.schedules, took.Round(time.Millisecond), float64(done.schedules)/took.Seconds(),
		done.lasted.Hours()/24/365, done.generators, done.ids, done.steps, done.requests, done.restores)
	if err != nil {
		t.Fatalf("seed %d: %v\nto see it: go test ./lease/term -run '^TestSchedules$' -v -term.seed=%d", seed, err, seed)
	}
}

// replay runs one schedule and prints what happened.
func replay(t *testing.T, seed uint64, draw func(*rand.Rand) setup, m mutant) {
	t.Helper()
	w := newWorld(seed, draw, m)
	w.trace = &strings.Builder{}
	err := w.run()
	t.Logf("%s; layout %s; %+v; %+v\n%s", w.kind, w.rules.Layout, w.rules, w.faults, w.trace)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// TestGenerators simulates with the generator that programs use.
func TestGenerators(t *testing.T) {
	draw := func(rng *rand.Rand) setup {
		s := anySetup(rng)
		s.real = true
		return s
	}
	if _, seed, err := simulate(1, *schedules/10, draw, mutant{}); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// TestDeterminism: a seed says everything.
func TestDeterminism(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		var traces [2]string
		for i := range traces {
			w := newWorld(seed, anySetup, mutant{})
			w.trace = &strings.Builder{}
			if err := w.run(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			traces[i] = w.trace.String()
		}
		if traces[0] != traces[1] || traces[0] == "" {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// TestScenes: what is staged for mutants is harmless without them.
func TestScenes(t *testing.T) {
	for _, m := range mutants {
		if m.scene == nil {
			continue
		}
		if _, seed, err := simulate(1, 200, m.draw, mutant{scene: m.scene}); err != nil {
			t.Errorf("%s: seed %d: %v", m.name, seed, err)
		}
	}
}
