// Package pageagent keeps shared pages served, as firn agent does: it opens a lease for each lane, serves its page, and begins
// again with another lease where the page has ended and another one may be served. What a person has to mend ends it.
package pageagent

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
)

// Options are the options of an agent. Store and Lease have no default.
type Options struct {
	Path  string // of the page of lane 0
	Pool  string // for metrics
	Lanes int    // zero means 1
	Mode  fs.FileMode

	// Store opens the store. It is called again while its error may pass.
	Store func(context.Context) (store.Store, error)

	// Lease opens the lease of a lane: one worker, without a grant file. It is called again while its error may pass.
	Lease func(ctx context.Context, st store.Store, path string) (*lease.Lease, error)

	// Started is called once, when the page of lane 0 can be used. It may block. Nil means that it is not called.
	Started func(State)

	Logger *slog.Logger // nil means slog.Default()
}

// An Agent serves the pages of one path.
type Agent struct {
	options Options
	log     *slog.Logger
	lanes   []*lane
	begun   sync.Once
}

// A lane is one page, of one lease at a time.
type lane struct {
	agent *Agent
	path  string
	n     int
	log   *slog.Logger
	stats page.Stats

	mu    sync.Mutex
	lease *lease.Lease // nil: none is open
	made  bool         // a page of this lease has a name
	err   error        // why there is no page; nil: it is being opened, or there is one
	since time.Time    // when that began
}

// New returns an agent that serves nothing yet.
func New(o Options) *Agent {
	o.Lanes = cmp.Or(o.Lanes, 1)
	a := &Agent{options: o, log: cmp.Or(o.Logger, slog.Default())}
	for n := range o.Lanes {
		path := pagefile.LanePath(o.Path, uint8(n))
		a.lanes = append(a.lanes, &lane{agent: a, path: path, n: n, log: a.log.With("path", path), since: time.Now()})
	}
	return a
}

// Check returns why a path of a lane cannot have a page; nil where all can.
func (a *Agent) Check() error {
	var errs []error
	for _, l := range a.lanes {
		errs = append(errs, page.Check(l.path))
	}
	return errors.Join(errs...)
}

// Run serves the pages until ctx is done, closes them and gives the workers back. It returns an error that a person has to
// mend, such as a missing pool, and nil after ctx. The page of a lane that cannot get a worker comes later than the others.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.Check(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	st, err := a.openStore(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	errs := make([]error, len(a.lanes))
	var all sync.WaitGroup
	for i, l := range a.lanes {
		all.Go(func() {
			if errs[i] = l.run(ctx, st); errs[i] != nil {
				stop() // nothing of an agent with a fault is left to be found later
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ended is an error of something that ctx has ended, or nil.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openStore opens the store as soon as that can be done.
func (a *Agent) openStore(ctx context.Context) (st store.Store, err error) {
	var told tries
	for {
		if st, err = a.options.Store(ctx); err == nil || ctx.Err() != nil || !passes(err) {
			return st, err
		}
		for _, l := range a.lanes {
			l.fails(err)
		}
		told.tell(a.log, "cannot open the store; trying again", err)
		if !told.rest(ctx, err) {
			return nil, ctx.Err()
		}
	}
}

// run serves the lane's page.
func (l *lane) run(ctx context.Context, st store.Store) error {
	var told tries
	for first := true; ; {
		served, err := l.once(ctx, st)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				l.log.Warn("the worker was not given back and falls free by itself", "err", err)
			}
			return nil
		}
		if !l.again(err, first) {
			return err
		}
		if served {
			first, told.pause = false, 0
		}
		l.fails(err)
		told.tell(l.log, "no page is served; trying again", err)
		if served && errors.Is(err, errBack) {
			continue // the store has just answered, and clients wait
		}
		if !told.rest(ctx, err) {
			return nil
		}
	}
}

// again reports whether to try again after an error. A page that could be made once, and cannot be made now, may be made
// later: a file system that is full can have room again.
func (l *lane) again(err error, first bool) bool {
	var system *fs.PathError
	var link *os.LinkError
	if errors.As(err, &system) || errors.As(err, &link) {
		return !first
	}
	return passes(err)
}

// passes reports whether an error may pass by itself.
func passes(err error) bool {
	return firn.Retryable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, firn.ErrClosed)
}

// once opens a lease and serves its page until one of them ends. It reports whether there was a page.
func (l *lane) once(ctx context.Context, st store.Store) (served bool, err error) {
	o := &l.agent.options
	held, err := o.Lease(ctx, st, l.path)
	if err != nil {
		return false, err
	}
	l.set(held)
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go probe(serving, st, held, stop)
	err = page.Serve(serving, held, o.Path, &page.Options{
		Mode: o.Mode, Lanes: o.Lanes, Lane: l.n, Logger: l.agent.log, Stats: &l.stats, Made: l.pageMade,
	})
	l.mu.Lock()
	served = l.made
	l.mu.Unlock()
	l.set(nil)
	if err == nil && errors.Is(context.Cause(serving), errBack) {
		err = errBack
	}
	return served, errors.Join(err, held.Close())
}

// errBack ends a lease whose ids ended while the store was away, because the store answers again.
var errBack = errors.New("ids had ended, and the store answers again")

// How often a store is asked whether it is back, at least, and how long it has to answer. Each agent waits for a random part of
// probeEvery, half of it or more: so those of many hosts do not ask at once.
const (
	probeEvery = 100 * time.Millisecond
	probeWait  = time.Second
)

// probe asks the store, once ids have ended, whether it is back. The lease asks more and more seldom, up to 4 s apart, and may wait
// again when it is answered; and clients of a page cannot tell it that they wait. A new lease takes a worker at once.
func probe(ctx context.Context, st store.Store, held *lease.Lease, back context.CancelCauseFunc) {
	ended := func() (ended, away bool) {
		now := held.State()
		return now.Left(time.Now().Add(-now.Offset)) == 0, now.StoreAway
	}
	for waits := false; ; { // waits: ids ended because the store was away
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeEvery/2 + rand.N(probeEvery/2)):
		}
		over, away := ended()
		if waits = over && (waits || away); !waits {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, probeWait)
		_, err := st.Durability(asked)
		cancel()
		if over, _ := ended(); err == nil && over {
			back(errBack)
			return
		}
	}
}

// set sets the lease that the lane has.
func (l *lane) set(held *lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.made = held, false
	if l.err == nil {
		l.since = time.Now()
	}
}

// fails remembers why there is no page.
func (l *lane) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// pageMade is called when a page of the lane has its name.
func (l *lane) pageMade(int64, uint64) {
	l.mu.Lock()
	l.made, l.err = true, nil
	l.mu.Unlock()
	if l.n == 0 {
		l.agent.begun.Do(func() { go l.agent.started() })
	}
}

// started says that the page of lane 0 can be used: to the caller, and to systemd where that started this process.
func (a *Agent) started() {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		a.log.Warn("systemd was not told", "err", err)
	}
	if a.options.Started != nil {
		a.options.Started(a.State())
	}
}

// Between two tries.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 500 * time.Millisecond
	latePause  = 10 * time.Second // where the pool says when its ids start
)

// tries are those of one lane, or of the store.
type tries struct {
	pause time.Duration
	told  string // the error that was logged last
}

// tell logs an error once.
func (t *tries) tell(log *slog.Logger, what string, err error) {
	if text := err.Error(); text != t.told {
		t.told = text
		log.Warn(what, "err", err)
	}
}

// rest waits before the next try, and reports whether there is one. The pauses are so short that ids are back within a second of
// the store, and they are spread, because all agents of a store try then.
func (t *tries) rest(ctx context.Context, err error) bool {
	t.pause = min(max(2*t.pause, leastPause), mostPause)
	wait := t.pause/2 + rand.N(t.pause/2)
	var early *lease.NotYetError
	if errors.As(err, &early) {
		wait += min(max(time.Until(early.StartsAt), 0), latePause)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
