package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A holder is away while somebody else gets its worker. The store forgets that,
// and the holder comes back in time to go on: the two must not have issued the
// same.
func TestLossyRevival(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		pass func(w *world, other *process) // until the other one issues
		back time.Duration                  // when the holder comes back, after its last write
	}{
		"an operator releases the worker": {func(w *world, other *process) {
			w.releaseWorker(w.pools[0], 0)
			w.at(w.now+s, other.boot)
			w.until(w.now + 18700*time.Millisecond)
		}, 19500 * time.Millisecond},
		"the store goes on on another clock, and the other's is set right": {func(w *world, other *process) {
			w.store.err = 5 * s
			other.host.set(-4*s, 0, false)
			w.at(w.now+11*s, other.boot)
			w.until(w.now + 12*s)
			other.host.set(4*s, 0, false)
			w.until(w.now + 7*s)
		}, 19500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := defaultRules(lossy, layouts[3])
			r.Wait = 20 * s
			r.Outage = 20 * s
			w := newWorld(1, func(uint64, *rand.Rand) setup {
				return setup{kind: lossy, leases: true, rules: r, workers: 1, pools: 1, procs: 2, fast: time.Millisecond, issues: s, founded: true, maxSpeed: 4}
			})
			w.store.err = -4 * s
			w.store.found()
			holder, other := w.procs[0], w.procs[1]
			holder.host.set(-4*s, 0, false)
			other.host.set(-4*s, 0, false)
			w.at(0, holder.boot)
			w.until(2 * time.Minute)
			for n := len(w.store.log); len(w.store.log) == n; { // it has just extended
				w.until(w.now + 10*time.Millisecond)
			}
			n := len(w.store.log)
			holder.pause(tt.back, false)
			tt.pass(w, other)
			w.store.err = -4 * s
			w.store.rollBack(n)
			w.until(w.now + 2*time.Minute)
			w.check.intervals()
			if w.failure != nil {
				t.Fatal(w.failure)
			}
		})
	}
}
