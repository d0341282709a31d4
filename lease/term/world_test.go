package term_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
)

// A world is one schedule: a store, hosts, processes that hold workers of one
// pool, and what befalls them. It is made from a seed, runs in one goroutine
// and in simulated time, and is the same every time.
type world struct {
	seed uint64
	setup
	mutant mutant
	rng    *rand.Rand

	origin time.Time     // true time when the schedule begins
	now    time.Duration // true time since
	queue  queue

	store *simStore
	hosts []*host
	procs []*process
	check checker

	calm     bool // faults are over, for good
	cutOff   bool // an operator keeps all processes from the store
	wentBack bool // and it has been put back, and not been repaired yet
	restores int
	away     time.Duration // the store answers nobody before

	requests int
	steps    int
	failure  error
	trace    *strings.Builder // nil: none is kept
}

// A setup is what a world is made of. It is drawn from the seed.
type setup struct {
	kind     storeKind
	rules    term.Rules
	faults   faults
	procs    int
	fast     time.Duration // of a request, each way, at most
	lasts    time.Duration // until faults are over
	every    time.Duration // between two faults, on average
	long     time.Duration // the longest pauses and outages, on average
	issues   time.Duration // between two ids that a process wants, on average
	founded  bool          // the pool is there already
	unequal  bool          // members want different outage budgets; the pool is then never forgotten, only what came after it
	real     bool          // ids come from a firn.Generator; a seed does not say everything then
	lives    bool          // goes on after faults are over, until everybody has a worker
	known    bool          // faults may follow what the store has just done
	grace    time.Duration // a process that has no worker for so long, when it could, is stuck
	maxSpeed float64       // requests per process and second in the long run
}

type storeKind int

const (
	clocked  storeKind = iota // strict, with a clock
	blind                     // strict, without
	embedded                  // strict, on the clock of the one host
	lossy                     // forgets, with a clock
	lossyBlind
	shifting // strict and lossy by turns, and not to everybody alike; with a clock
)

func (k storeKind) String() string {
	return [...]string{"strict", "strict without a clock", "embedded", "lossy", "lossy without a clock", "shifting"}[k]
}

func (k storeKind) lossy() bool { return k >= lossy }
func (k storeKind) clock() bool { return k != blind && k != lossyBlind }

// newWorld makes the world of a seed.
func newWorld(seed uint64, draw func(*rand.Rand) setup, m mutant) *world {
	w := &world{seed: seed, mutant: m, rng: rand.New(rand.NewPCG(seed, 0x6669726e))}
	w.setup = draw(w.rng)
	if m.rules != nil {
		m.rules(&w.rules)
	}
	w.origin = time.Date(2026, 3, 1, 11, 59, 60-w.rng.IntN(90), w.rng.IntN(1e9), time.UTC)
	w.check.start(w)
	w.store = newSimStore(w)
	for i := range w.setup.procs {
		if i == 0 || w.kind != embedded {
			w.hosts = append(w.hosts, newHost(w))
		}
		w.procs = append(w.procs, newProcess(w, i, w.hosts[len(w.hosts)-1]))
	}
	return w
}

// run runs the schedule and returns what went wrong.
func (w *world) run() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	w.store.found()
	if w.mutant.scene != nil {
		w.mutant.scene(w)
		return w.failure
	}
	for _, p := range w.procs {
		p.after(w.upTo(w.lasts/20+time.Millisecond), p.boot)
	}
	w.nextFault()
	w.until(w.lasts)
	if w.lives {
		w.calmDown()
		w.until(w.lasts + w.grace + time.Minute)
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
func (w *world) fail(format string, args ...any) {
	if w.mutant.name != "" {
		return // only ids count: see repeated
	}
	w.stop(format, args...)
}

func (w *world) stop(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %s: "+format, append([]any{w.now}, args...)...)
		w.logf("FAILED: %v", w.failure)
	}
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

// An event is something to do at a time; those of one time in the order in
// which they were asked for.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// A queue is a heap of events.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) len() int     { return len(q.heap) }
func (q *queue) first() event { return q.heap[0] }

func (q *queue) less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(at time.Duration, do func()) {
	q.seq++
	q.heap = append(q.heap, event{at, q.seq, do})
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(i, up) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *queue) pop() event {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && q.less(down+1, down) {
			down++
		}
		if !q.less(down, i) {
			return top
		}
		q.heap[i], q.heap[down] = q.heap[down], q.heap[i]
		i = down
	}
}
