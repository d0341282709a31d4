//go:build linux

package siege

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// Many processes that start at the same instant on a store that does not exist
// yet take as many workers, of which there are no more, and give them back.
func TestSimultaneousStart(t *testing.T) {
	many := 16
	if testserver.Long() {
		many = 64
	}
	// Processes that are slow to get their turn at the file are given all the time they want.
	w := newWorld(t, "-workers", strconv.Itoa(many), "-rate", "50", "-wait", "5m", "-outage", "5m")
	r, barrier, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		w.start(launch{args: []string{"-barrier"}, files: []*os.File{r}})
	}
	r.Close()
	for _, p := range w.procs {
		p.await(ledger.Started)
	}
	begun := now()
	barrier.Close()
	var last int64
	taken := map[int64]string{}
	for _, p := range w.procs {
		last = max(last, p.await(ledger.Opened).Boot)
		e := p.await(ledger.Granted)
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
		for _, e := range p.find(0, named(ledger.Refused, ledger.Failed)) {
			if e.Kind != ledger.Shut {
				t.Errorf("%s: %s: %s", p.name, e.Event, e.Text)
			}
		}
	}
	// All are free again: whoever comes next has the first.
	p := w.start(launch{})
	if e := p.await(ledger.Granted); e.Worker != 0 || e.Term < 2 {
		t.Errorf("after all had ended, worker %d, term %d was taken, not worker 0 again", e.Worker, e.Term)
	}
	p.issues(20)
	if r := w.check(); int(r.Workers) != many {
		t.Errorf("%d processes held %d workers", many, r.Workers)
	}
}

// Processes that make the store are killed in the middle of it. Whoever comes
// next makes it, or finds it made.
func TestKilledWhileCreating(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for range 20 {
		b := newBench(t)
		for range 3 {
			cmd, _ := b.next(1_000_000, null)
			time.AfterFunc(rand.N(40*time.Millisecond), func() { cmd.Process.Kill() })
			defer b.ends(cmd)
		}
		time.Sleep(rand.N(40 * time.Millisecond))
		if r := b.run("next"); r.code != 0 {
			t.Errorf("exit code %d, %s", r.code, r.errs)
		}
	}
}
