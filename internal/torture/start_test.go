//go:build linux

package torture

import (
	"os"
	"testing"
	"time"
)

// Many processes that start at the same instant on a store that does not exist
// yet take as many workers, and give them back.
func TestSimultaneousStart(t *testing.T) {
	const many = 64
	w := newWorld(t, "-barrier", "-rate", "200")
	r, barrier, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		w.start(launch{files: []*os.File{r}})
	}
	r.Close()
	for _, p := range w.procs {
		p.await(Started)
	}
	begun := now()
	barrier.Close()
	var last int64
	taken := map[int64]string{}
	for _, p := range w.procs {
		last = max(last, p.await(Opened).Boot)
		e := p.await(Granted)
		if other, ok := taken[e.Worker]; ok {
			t.Errorf("%s and %s both have worker %d", p.name, other, e.Worker)
		}
		taken[e.Worker] = p.name
	}
	t.Logf("the last of %d had its worker after %s", many, (time.Duration(last) - begun).Round(time.Millisecond))
	for _, p := range w.procs {
		p.issues(20)
	}
	for _, p := range w.procs {
		p.say("close")
	}
	for _, p := range w.procs {
		p.close()
		for _, e := range p.find(0, named(Refused, Failed)) {
			if e.Kind != Shut {
				t.Errorf("%s: %s: %s", p.name, e.Event, e.Text)
			}
		}
	}
	// All are free again: whoever comes next has the first.
	p := w.start(launch{})
	if e := p.await(Granted); e.Worker != 0 || e.Term < 2 {
		t.Errorf("after all had ended, worker %d, term %d was taken, not worker 0 again", e.Worker, e.Term)
	}
	p.issues(20)
	if r := w.check(); r.Workers != many {
		t.Errorf("%d processes held %d workers", many, r.Workers)
	}
}
