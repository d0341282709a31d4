//go:build linux

package siege

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/open"
)

// patience is how long a test waits for what must come. Machines that run tests
// are slow at times; a test that passes does not wait so long.
const patience = 3 * time.Minute

// now reads the boot clock, as the program does.
func now() time.Duration { return time.Duration(ledger.Boot()) }

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}

// A world is a store and all the processes that ever used it.
type world struct {
	t      testing.TB
	dir    string
	path   string // of the store, if it is a file
	url    string // of the store
	layout firn.Layout
	args   []string // of every process
	lossy  bool     // the store forgets, so that what it granted proves nothing

	eras []era

	mu    sync.Mutex
	procs []*proc
}

// An era begins when a store is put back to an old copy. No grant from before reaches a
// tick, and every later one is above it.
type era struct {
	begun time.Duration // by the boot clock
	tick  firn.Tick

	// forgot is when the store was there again without its workers, and cured when somebody
	// had done something about it. Both are zero where nobody could reach it meanwhile.
	forgot, cured time.Duration
}

// eraOf is how many eras had begun when a horizon was granted.
func (w *world) eraOf(horizon firn.Tick) (n int) {
	for n < len(w.eras) && w.eras[n].tick < horizon {
		n++
	}
	return n
}

// outlived reports whether a process that says at an event that its store has forgotten is
// one of before the era of that event. A lease has then been granted nothing since: it may
// have gone on with a grant file, and a clock that is ahead makes for horizons of an era
// that has not begun. A series says so whatever the lease beside it was granted.
func (w *world) outlived(p *proc, e ledger.Event) bool {
	eras := 0
	for eras < len(w.eras) && int64(w.eras[eras].begun) <= e.Boot {
		eras++
	}
	if eras == 0 {
		return false
	}
	begun := int64(w.eras[eras-1].begun)
	if e.Hand >= hands {
		return len(p.find(0, func(o ledger.Event) bool { return o.Event == ledger.Opened && o.Boot < begun })) > 0
	}
	granted := p.find(0, func(g ledger.Event) bool {
		return g.Event == ledger.Granted && begun <= g.Boot && g.Boot <= e.Boot && w.eraOf(g.Horizon) >= eras
	})
	return len(granted) == 0
}

func newWorld(t testing.TB, args ...string) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "store", "ids.db")
	w := &world{t: t, dir: dir, path: path, url: "sqlite:" + path, layout: firn.Default(), args: args}
	if i := slices.Index(args, "-workers"); i >= 0 { // for whoever creates the pool
		n, err := strconv.ParseInt(args[i+1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w.args = slices.Delete(slices.Clone(args), i, i+2)
		w.found(&pool.Options{Workers: n})
	}
	return w
}

// found creates the pool, whose ids begin at once, as "firn pool create --new" does.
func (w *world) found(o *pool.Options) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	st, err := open.URL(ctx, w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	if _, err := pool.Create(ctx, st, pool.Default, o); err != nil {
		w.t.Fatal(err)
	}
}

// ownGroup keeps a Ctrl-C at the terminal from a program: it is for the one that started
// it. A program whose input ends with that one ends; one that is stopped then is ended by
// the next torture, where the system has not ended it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// launch is how a process is started.
type launch struct {
	args  []string
	off   time.Duration // of its clock
	files []*os.File    // from descriptor 3 on
}

// start starts the program.
func (w *world) start(how launch) *proc {
	w.t.Helper()
	w.mu.Lock()
	name := fmt.Sprintf("p%d", len(w.procs))
	p := &proc{t: w.t, name: name, dir: filepath.Join(w.dir, name), news: make(chan struct{}), ended: make(chan struct{})}
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	if err := os.MkdirAll(ledger.Numbers(p.dir), 0o700); err != nil {
		w.t.Fatal(err)
	}
	p.skew = newSkew(w.t, filepath.Join(p.dir, "clock"))
	p.skew.set(how.off)
	args := append([]string{"-store", w.url, "-ledger", p.dir, "-name", name}, w.args...)
	p.cmd = exec.Command(program(w.t, "holder"), append(args, how.args...)...)
	p.cmd.Env = append(os.Environ(), clockFile+"="+p.skew.path)
	p.cmd.ExtraFiles = how.files
	p.cmd.SysProcAttr = ownGroup()
	p.run()
	return p
}

// freeze stops a process at an instant at which it does not write to the store.
// One that is stopped in the middle of that keeps everybody else from writing,
// so that nobody can take over until it goes on.
func (w *world) freeze(p *proc) {
	w.t.Helper()
	for {
		p.stop()
		l := w.locker("immediate")
		free := l.says(ledger.Locked, 2*time.Second)
		l.kill()
		if free {
			return
		}
		w.t.Logf("%s was stopped inside a transaction; again", p.name)
		p.cont()
		// It leaves the transaction. Meanwhile another may take its worker, and it issues nothing more.
		before := p.count()
		for leave := time.Now().Add(2 * time.Second); p.count() == before && time.Now().Before(leave); {
			time.Sleep(time.Millisecond)
		}
	}
}

// gather ends all processes, and returns what they left behind.
func (w *world) gather() (issuers []Issuer) {
	w.t.Helper()
	for _, p := range w.procs {
		p.kill()
		issuers = append(issuers, w.remains(p))
	}
	return issuers
}

// soFar is gather for processes that go on.
func (w *world) soFar() (issuers []Issuer) {
	w.t.Helper()
	for _, p := range w.procs {
		if p.finished() {
			issuers = append(issuers, w.remains(p))
			continue
		}
		issuers = append(issuers, Issuer{Name: p.name, Hands: p.runs(), Numbers: p.numbers()})
	}
	return issuers
}

// remains is what a process that has ended left behind.
func (w *world) remains(p *proc) Issuer {
	w.t.Helper()
	if p.remains == nil {
		who := p.issuer()
		if w.lossy {
			who.Grants = nil
		}
		p.remains, p.total = &who, who.issued()
	}
	who := *p.remains
	if who.Grants != nil {
		who.Grants = w.valid(who.Grants)
	}
	return who
}

// valid leaves out the grants that a store gave that had forgotten, before somebody had
// made it safe: nothing may be issued by them. What was asked for before the loss is not
// one of them, however late its process says so, and what was asked for before the cure is
// one. The first of an era have no record before them, and begin above all earlier eras.
func (w *world) valid(grants []Grant) []Grant {
	valid := []Grant{}
	for _, g := range grants {
		if slices.ContainsFunc(w.eras, func(e era) bool {
			return int64(e.begun) < g.asked && int64(e.forgot) < g.boot && g.asked < int64(e.cured) && g.Horizon <= e.tick
		}) {
			continue
		}
		if g.Era = w.eraOf(g.Horizon); g.Era > 0 && g.Prior >= 0 {
			g.Prior = max(g.Prior, w.eras[g.Era-1].tick)
		}
		valid = append(valid, g)
	}
	return valid
}

// lock locks the store until the process that is returned is told to end.
func (w *world) lock(mode string) *proc {
	w.t.Helper()
	p := w.locker(mode)
	p.await(ledger.Locked)
	return p
}

// locker is lock that does not wait until the store is locked.
func (w *world) locker(mode string) *proc {
	w.t.Helper()
	p := &proc{t: w.t, name: "lock", dir: w.t.TempDir(), news: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.Command(program(w.t, "holder"), "-lock", mode, "-store", w.url)
	p.cmd.SysProcAttr = ownGroup()
	p.run()
	return p
}
