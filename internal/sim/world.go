package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/firn-id/firn"
)

// A world is one schedule: a store, hosts, processes that hold workers of one
// pool or draw from one counter, and what befalls them. It is made from a seed,
// runs in one goroutine and in simulated time, and is the same every time.
type world struct {
	seed uint64
	setup
	rng *rand.Rand

	origin  time.Time     // true time when the schedule begins
	now     time.Duration // true time since
	queue   queue
	threads *threads

	store *memory
	hosts []*host
	procs []*process
	check checker

	pools    []*pool
	errands  []*errand
	ids      map[string]string // of pools, as package pool made them and as they are here
	marks    map[int64]bool    // of recoveries, as they are here
	versions uint64            // of writes, so far
	files    uint64            // grant files, so far

	forgot   bool          // the store has forgotten something
	calm     bool          // faults are over, for good
	cutOff   bool          // an operator keeps all processes from the store
	wentBack bool          // and it has been put back, and not been repaired yet
	away     time.Duration // the store answers nobody before
	ends     time.Duration // faults are over then: later where a pool's ids start late
	starts   time.Duration // no pool's ids start before, or those of one do not
	created  int           // pools, so far
	copy     *memory       // of the store, made by somebody; nil: none was
	steps    []step        // of the store's clock
	mending  bool          // somebody is about to recover documents
	cloning  cloning

	total   Total
	failure *Failure
	trace   io.Writer // nil: none is kept
}

// newWorld makes the world of a seed.
func newWorld(seed uint64, of source) *world {
	w := &world{seed: seed, threads: new(threads), rng: rand.New(rand.NewPCG(seed, 0x6669726e))}
	w.setup = of(seed, w.rng)
	w.ends, w.ids, w.marks = w.lasts, map[string]string{"founded": "founded"}, map[int64]bool{}
	newPools(w)
	w.origin = time.Date(2026, 3, 1, 11, 59, 60-w.rng.IntN(90), w.rng.IntN(1e9), time.UTC)
	if w.last {
		w.origin = w.rules.Layout.End().Add(-w.lasts/2 - w.upTo(w.lasts/4))
	}
	if w.documents && !w.leases {
		w.origin = w.paper().midnight.Add(-w.upTo(w.lasts))
	}
	w.check.start(w)
	w.store = newMemory(w)
	for i := range w.setup.procs {
		if i == 0 || w.kind != embedded {
			w.hosts = append(w.hosts, newHost(w))
		}
		w.procs = append(w.procs, newProcess(w, i, w.hosts[len(w.hosts)-1]))
	}
	return w
}

// run runs the schedule and returns what went wrong.
func (w *world) run() (failure *Failure) {
	defer func() {
		if v := recover(); v != nil {
			failure = &Failure{w.seed, w.wrong.name, fmt.Sprintf("panic: %v\n%s", v, debug.Stack()), misstep}
		}
		for _, e := range w.errands {
			e.end()
		}
		for _, p := range w.procs {
			if p.holder != nil {
				p.holder.over()
			}
			if p.drawer != nil {
				p.drawer.over()
			}
			if p.clerk != nil {
				p.clerk.over()
			}
		}
	}()
	w.store.found()
	if w.scene != nil {
		w.scene(w)
		return w.failure
	}
	for _, p := range w.procs {
		p.after(w.upTo(w.lasts/20+time.Millisecond), p.boot)
	}
	w.nextFault()
	for w.failure == nil && w.now < w.ends {
		w.until(w.ends)
	}
	if w.lives {
		w.calmDown()
		w.until(w.ends + w.grace + time.Minute)
	}
	if w.failure == nil {
		w.check.end()
	}
	return w.failure
}

// until runs what happens before t.
func (w *world) until(t time.Duration) {
	for w.failure == nil && w.queue.len() > 0 && w.queue.first().at <= t {
		e := w.queue.pop()
		w.now = e.at
		e.do()
	}
	w.now = t
}

// fail notes the first thing that went wrong, and ends the schedule.
func (w *world) fail(f flaw, format string, args ...any) {
	if w.failure != nil {
		return
	}
	w.failure = &Failure{w.seed, w.wrong.name, fmt.Sprintf("at %s: "+format, append([]any{w.now}, args...)...), f}
	w.logf("FAILED: %s: %s", f, w.failure.What)
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%14.6f  "+format+"\n", append([]any{w.now.Seconds()}, args...)...)
	}
}

func (w *world) at(t time.Duration, do func())    { w.queue.push(max(t, w.now), do) }
func (w *world) after(d time.Duration, do func()) { w.queue.push(w.now+max(d, 0), do) }

// true time as an instant, and as a tick of the layout.
func (w *world) instant() time.Time          { return w.origin.Add(w.now) }
func (w *world) tick(t time.Time) firn.Tick  { return w.rules.Layout.Tick(t) }
func (w *world) begin(t firn.Tick) time.Time { return w.rules.Layout.Time(t) }

// Draws.
func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

// around draws a duration from 0 up, most of them below d, some far above.
func (w *world) around(d time.Duration) time.Duration {
	return time.Duration(w.rng.ExpFloat64() * float64(d))
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// bits draws a machine's seed.
func (w *world) bits() (b [32]byte) {
	for i := 0; i < len(b); i += 8 {
		for n, k := w.rng.Uint64(), i; k < i+8; n, k = n>>8, k+1 {
			b[k] = byte(n)
		}
	}
	return b
}
