//go:build linux

package siege

import (
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// Somebody tidies up and removes the journals beside the file, which a process
// has open, and the next one comes before that has noticed.
func TestJournalsRemovedWhileOthersStart(t *testing.T) {
	w := newWorld(t, "-rate", "-1")
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(1000)
	r, barrier, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	next := w.start(launch{args: []string{"-barrier"}, files: []*os.File{r}})
	r.Close()
	next.await(ledger.Started)
	remove(t, w.path+"-wal", w.path+"-shm")
	removed := now()
	barrier.Close()
	e, _ := p.after(0, "calls fail", func(e ledger.Event) bool { return e.Event == ledger.Failed && e.Kind == ledger.Forgot })
	t.Logf("noticed after %s", round(time.Duration(e.Boot)-removed))
	w.check()
}

// The same after a kill, when there is nobody to notice, and whoever comes next
// has an earlier clock. A layout with few ids a millisecond has both issue for as long as
// those with many, and there is less to compare.
func TestJournalsRemovedAfterAKill(t *testing.T) {
	const layout = "time:41@1ms,worker:10,seq:8;epoch=2025-01-01T00:00:00Z"
	w := newWorld(t, "-rate", "-1", "-layout", layout)
	w.layout = firn.MustLayout(layout)
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(100_000)
	p.kill()
	remove(t, w.path+"-wal", w.path+"-shm")
	next := w.start(launch{off: -500 * time.Millisecond})
	if _, place := next.after(0, "it starts, or does not", named(ledger.Opened, ledger.Refused)); len(next.find(place-1, named(ledger.Opened))) > 0 {
		next.issues(400_000)
	}
	w.check()
}

// The store has a second name, in another directory, and each has its own
// journals.
func TestLinkedFile(t *testing.T) {
	shared(t, "ln $file $there;")
}
