package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A crashLoop is a number of processes that die soon after each start and are
// started again after longer and longer, as a container platform does it. Beside
// them a healthy process comes and goes.
type crashLoop struct {
	kind    storeKind
	procs   int
	workers int64
	jitter  bool                       // or all at the same instants
	clock   func(id int) time.Duration // by which a host's is wrong
	soon    time.Duration              // the healthy one has a worker after that at most
}

func TestCrashLoops(t *testing.T) {
	const s = time.Second
	hour := func(ids int, d time.Duration) func(int) time.Duration {
		return func(id int) time.Duration {
			if id > 0 && id <= ids {
				return d
			}
			return 0
		}
	}
	for name, loop := range map[string]crashLoop{
		"7 on 16":                     {procs: 7, workers: 16, soon: s},
		"7 on 16, at random instants": {procs: 7, workers: 16, jitter: true, soon: s},
		"200 on 1024":                 {procs: 200, workers: 1024, soon: s},
		"200 on 1024, at random":      {procs: 200, workers: 1024, jitter: true, soon: s},
		"200 on 65536, looked up":     {procs: 200, workers: 65536, jitter: true, soon: s},
		"embedded":                    {kind: embedded, procs: 7, workers: 16, jitter: true, soon: s},
		"some clocks off by seconds": {procs: 7, workers: 16, jitter: true, soon: s, clock: func(id int) time.Duration {
			return time.Duration(id%3-1) * 4 * s
		}},
		"two hosts an hour behind": {procs: 7, workers: 16, jitter: true, soon: s, clock: hour(2, -time.Hour)},
		"two hosts an hour ahead":  {procs: 7, workers: 16, jitter: true, soon: s, clock: hour(2, time.Hour)},
		// Without a clock of the store the dead are found out by looking on.
		"7 on 16, without a clock":     {kind: blind, procs: 7, workers: 16, jitter: true, soon: 36 * s},
		"200 on 1024, without a clock": {kind: blind, procs: 200, workers: 1024, jitter: true, soon: 36 * s},
		// A new holder on a store that forgets waits until it may issue.
		"7 on 16, lossy":     {kind: lossy, procs: 7, workers: 16, jitter: true, soon: 25 * s},
		"200 on 1024, lossy": {kind: lossy, procs: 200, workers: 1024, jitter: true, soon: 14 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop.run(t)
		})
	}
}

func (c crashLoop) world() *world {
	layout := firn.Default()
	if c.workers > layout.Workers() {
		layout = firn.MustLayout("sonyflake")
	}
	r := defaultRules(c.kind, layout)
	w := newWorld(1, func(uint64, *rand.Rand) setup {
		return setup{
			kind: c.kind, leases: true, rules: r, workers: c.workers, pools: 1, procs: c.procs + 1, fast: 2 * time.Millisecond, founded: true,
			issues: time.Second, maxSpeed: 100,
		}
	})
	w.store.err = 0
	w.store.found()
	for _, p := range w.procs {
		p.name = fmt.Sprintf("p%d", p.id)
		p.host.set(0, 0, false)
		if c.clock != nil {
			p.host.set(c.clock(p.id), 0, false)
		}
	}
	return w
}

func (c crashLoop) run(t *testing.T) {
	w := c.world()
	lasts := time.Hour + 30*time.Minute
	if c.procs > 100 && many() <= few {
		lasts = 20 * time.Second // when most are started
	}
	starts := 0
	var slowest time.Duration
	for _, p := range w.procs[1:] {
		var begin func(delay time.Duration)
		begin = func(delay time.Duration) {
			starts++
			p.boot()
			w.after(2*time.Second, func() {
				p.kill()
				pause := delay
				if c.jitter {
					pause += w.upTo(delay/2 + 2*time.Second)
				}
				w.after(pause, func() { begin(min(max(2*delay, 10*time.Second), 5*time.Minute)) })
			})
		}
		at := time.Duration(0)
		if c.jitter {
			at = w.upTo(5 * time.Second)
		}
		w.at(at, func() { begin(0) })
	}
	healthy, tries := w.procs[0], 0
	for w.now < lasts && w.failure == nil {
		w.until(w.now + w.around(10*time.Second))
		healthy.boot()
		tries++
		began := w.now
		for healthy.holder.lacks >= 0 && w.failure == nil {
			w.until(w.now + time.Millisecond)
			if w.now-began > c.soon {
				t.Fatalf("at %s the healthy one has no worker after %s: %s: %v", began, w.now-began, healthy.holder.p.Term.Phase, healthy.holder.p.Term.Err)
			}
		}
		slowest = max(slowest, w.now-began)
		w.until(w.now + w.upTo(10*time.Second))
		if w.chance(0.9) {
			healthy.close()
			w.until(w.now + time.Second)
		}
		if healthy.alive {
			healthy.kill()
		}
	}
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	if told := w.check.full; len(told) > 0 {
		t.Errorf("told %d times that none is free: %s", len(told), told[0])
	}
	w.check.intervals()
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	t.Logf("%d starts, %d of a healthy process, which had a worker after %s at most", starts, tries, slowest)
}
