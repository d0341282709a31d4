package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A Total counts what schedules were made of.
type Total struct {
	Schedules int
	Lasted    time.Duration // of simulated time
	IDs       int           // looked at; a tick of a worker may stand for many
	Numbers   int
	Texts     int // of documents
	Grants    int // terms that issued
	Resumed   int // of those, from a grant file
	Blocks    int // of numbers
	Steps     int // of machines
	Requests  int
	Forgotten int // writes
	Repeats   int // schedules that repeated an id or a number
	Cloned    int // ids repeated by clones, as they may
	Faults    [faultKinds]int
}

func (t *Total) add(o *Total) {
	t.Schedules += o.Schedules
	t.Lasted += o.Lasted
	t.IDs += o.IDs
	t.Numbers += o.Numbers
	t.Texts += o.Texts
	t.Grants += o.Grants
	t.Resumed += o.Resumed
	t.Blocks += o.Blocks
	t.Steps += o.Steps
	t.Requests += o.Requests
	t.Forgotten += o.Forgotten
	t.Repeats += o.Repeats
	t.Cloned += o.Cloned
	for i, n := range o.Faults {
		t.Faults[i] += n
	}
}

// A source draws the schedule of a seed.
type source func(seed uint64, rng *rand.Rand) setup

// each is the source that draws every schedule in one way.
func each(draw func(*rand.Rand) setup) source {
	return func(_ uint64, rng *rand.Rand) setup { return draw(rng) }
}

// product are the schedules that firn is judged by. In a few the layout ends, or workers are held
// for other programs. A third is in the situations of draws.go, in turn: what gives a broken rule
// opportunity is where a whole one is tried.
func product(seed uint64, rng *rand.Rand) setup {
	switch {
	case seed%64 == 1:
		return lastSetup(rng)
	case seed%64 == 2:
		return heldSetup(rng)
	case seed%3 != 0:
		return anySetup(rng)
	}
	return draws[seed/3%uint64(len(draws))].draw(rng)
}

// simulate runs n schedules, of the seeds from first on, on all processors, until
// ctx is done, and returns the first that fails. It counts them in done.
func simulate(ctx context.Context, first uint64, n int, of source, done *atomic.Int64) (Total, *Failure) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // there is little to keep
	var (
		mu      sync.Mutex
		all     Total
		failed  *Failure
		next    atomic.Uint64
		least   atomic.Uint64 // seed that failed
		workers sync.WaitGroup
	)
	least.Store(1<<64 - 1)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var own Total
			var spare threads
			defer spare.end()
			for ctx.Err() == nil {
				k := next.Add(1) - 1
				seed := first + k
				if k >= uint64(n) || seed > least.Load() {
					break
				}
				w := newWorld(seed, of)
				w.threads = &spare
				f := w.run()
				w.total.Schedules, w.total.Lasted = 1, w.now
				own.add(&w.total)
				done.Add(1)
				if f != nil {
					if f.flaw == repeated {
						own.Repeats++
					}
					mu.Lock()
					if failed == nil || f.Seed < failed.Seed {
						failed = f
						least.Store(f.Seed)
					}
					mu.Unlock()
				}
			}
			mu.Lock()
			all.add(&own)
			mu.Unlock()
		})
	}
	workers.Wait()
	return all, failed
}

// replay runs one schedule and writes down what happened.
func replay(seed uint64, of source, to io.Writer) *Failure {
	w := newWorld(seed, of)
	w.trace = to
	fmt.Fprintf(to, "seed %d: store %s; layout %s; %d processes, leases %t, numbers %t, documents %t\nrules %+v\nfaults %+v\n",
		seed, w.kind, w.rules.Layout, len(w.procs), w.leases, w.series, w.documents, w.rules, w.faults)
	return w.run()
}
