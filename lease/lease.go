// Package lease gives a process a worker number that nobody else has, from a
// store it already has, and a source of ids that keeps it.
//
// Start with [Open]:
//
//	st, err := sqlite.OpenDefault(ctx) // on one host; on many, open.URL of package store/open
//	...
//	ids, err := lease.Open(ctx, st, nil)
//	...
//	defer ids.Close()
//	id, err := ids.Next(ctx)
//
// Ids that must never be equal come from one pool of one store. A pool is a set of worker
// numbers with one layout; it is created once, by package pool or "firn pool create", and
// Open never creates it, but for the first pool of a store in a file or in memory.
//
// Workers of a pool are recycled. A process that stops gives its worker back. The worker of
// a process that died falls free when the process has written nothing for its time to live.
// A worker's record holds the highest tick that its holders may have issued, written
// down before anything up to it was; the next process that takes the worker starts above
// that tick. Package internal/term decides, and says why that is enough; internal/holder
// does what it decides; this package gives it clocks, a store and a file.
package lease

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Lease holds a worker of a pool, or several, and issues ids with them. It
// extends, loses and takes them again by itself. It is a [firn.Source]; all its
// methods may be called from many goroutines at once.
//
// Ids of one lease increase strictly while it holds one worker. With several
// lanes those of each lane do.
type Lease struct {
	lanes []*lane
	only  *atomic.Pointer[firn.Generator] // of the lane, where there is one and calls wait for it; else nil
	at    atomic.Uint32                   // lane that calls begin with
	wait  time.Duration                   // Options.NextWait

	stop   context.CancelFunc
	done   sync.WaitGroup // the lanes' keepers
	closed atomic.Bool
	forgot atomic.Pointer[error] // why a lane found out that the store has forgotten: all end

	filed     bool            // it has a grant file
	ended     <-chan struct{} // closed by Close
	delegated atomic.Pointer[func(pagefile.Term) (pagefile.Issuer, error)]

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a lane's state changes
}

var _ firn.Source = (*Lease)(nil)

// A lane is one worker of a lease.
type lane struct {
	gen   atomic.Pointer[firn.Generator] // of the current term, or of the last; nil before the first. Its state is stored first
	state atomic.Pointer[State]
	nudge chan struct{} // a caller found the grant used up
	ended error         // what Close says of it; read once its keeper is done
}

// An OutageError says that a grant is used up because the store does not
// answer. Ids resume by themselves when it does.
type OutageError struct {
	EndedAt   time.Time // the last instant that was granted
	AwaySince time.Time // the first request that was not answered; zero while it is under way
	Err       error     // what came of the last request; nil while the first is under way
}

func (e *OutageError) Error() string {
	return e.Reason() + "; retry, ids resume when it answers"
}

// Reason is Error without what to do next.
func (e *OutageError) Reason() string {
	text := "lease: no ids since " + e.EndedAt.UTC().Format(time.RFC3339) + ": the store "
	if e.AwaySince.IsZero() {
		text += "does not answer"
	} else {
		text += "has not answered since " + e.AwaySince.UTC().Format(time.RFC3339)
	}
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Retryable is true; see firn.Retryable.
func (*OutageError) Retryable() bool { return true }

func (e *OutageError) Unwrap() error { return e.Err }

// Open leases a worker of the pool that the options name and returns when the first id
// can be issued. The lease outlives ctx. Close gives the worker back. Open one lease in a
// process and keep it. Nil options mean the pool "default".
//
// Open returns an error no later than 100 ms after ctx is done. If the store has not
// answered by then, a worker that was taken is given back in the background, within 5 s;
// otherwise it falls free when its time to live has passed.
//
// Errors to tell apart, besides the store's: [*MissingPoolError], the store has no such
// pool; [*NotYetError], its ids start later than Options.Wait; [*FullError], no worker is
// free; [*WorkerError], the pool does not have the worker that was asked for;
// [*LayoutError], the pool has another layout; [*store.OtherStoreError], this store is a copy;
// [*ClockError], this clock is ahead of the store's; [*AwayError], the store
// does not answer any more; [*store.ForgotError]; [*GrantFileError]; [*firn.EndError], the
// layout has ended. A store that does not say what it promises to begin with is not
// waited for: its own error is returned at once, but where [Options.GrantFile] has a grant
// to go on with.
func Open(ctx context.Context, s store.Store, opts *Options) (*Lease, error) {
	o := opts.withDefaults()
	if err := errors.Join(o.faults()...); err != nil {
		return nil, err
	}
	files, err := o.openFiles()
	if err != nil {
		return nil, err
	}
	begun := o.clocks()
	seen, err := o.join(ctx, s, files, begun)
	if err != nil {
		files.close()
		return nil, err
	}
	requests := context.WithoutCancel(ctx)
	life, stop := context.WithCancel(requests)
	l := &Lease{stop: stop, changed: make(chan struct{}), lanes: make([]*lane, o.Lanes), wait: o.NextWait, filed: o.GrantFile != "", ended: life.Done()}
	first := make(chan opened, o.Lanes)
	rules := o.rules(seen.Durability)
	for i := range l.lanes {
		l.lanes[i] = &lane{nudge: make(chan struct{}, 1)}
		k := &keeper{
			lease: l, lane: l.lanes[i], store: s, options: o, requests: requests, stop: life.Done(),
			log: o.Logger.With("pool", o.Pool), opened: first, file: files.of(i),
		}
		l.done.Go(func() { k.run(rules, seen, begun) })
	}
	if o.Lanes == 1 && o.NextWait == 0 {
		l.only = &l.lanes[0].gen
	}
	if err := l.awaitOpen(ctx, first); err != nil {
		return nil, errors.Join(err, l.giveUp(ctx))
	}
	return l, nil
}

// parting is for how long Open outlives its context, so that a store which answers has
// the workers back when Open returns.
const parting = 100 * time.Millisecond

// giveUp closes a lease that was never handed out. Where the store does not answer in
// time it is closed in the background, within 5 s.
func (l *Lease) giveUp(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
	}
	t := time.NewTimer(parting)
	defer t.Stop()
	select {
	case err := <-closed:
		return err
	case <-t.C:
		return nil
	}
}

// awaitOpen waits until every lane has its first worker, and for its first tick.
func (l *Lease) awaitOpen(ctx context.Context, first <-chan opened) error {
	var ready time.Time
	for range l.lanes {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o := <-first:
			if o.err != nil {
				return o.err
			}
			if at := time.Now().Add(o.delay); at.After(ready) {
				ready = at
			}
		}
	}
	t := time.NewTimer(time.Until(ready))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Next returns the next id. It waits where the sequence of a tick is used up, and while a lost
// worker is replaced. On a store that can lose writes that takes as long as a start, 13 s or
// 5 min 10 s: the log says so, and with [Options.NextWait] Next returns a [*NotYetError] instead.
//
// Errors: [*OutageError] while the store is away for longer than the outage
// budget, [*store.ForgotError] once it has forgotten (final), those of [Open]
// while no worker can be had, [*GrantFileError] while that cannot be written,
// [*firn.EndError] at the layout's end, [firn.ErrClosed] after Close, and ctx's.
func (l *Lease) Next(ctx context.Context) (firn.ID, error) {
	if l.only != nil {
		id, err := l.only.Load().Next(ctx)
		if err == nil {
			return id, nil
		}
	}
	return l.nextOfLanes(ctx)
}

func (l *Lease) nextOfLanes(ctx context.Context) (firn.ID, error) {
	if id, err := l.try(); err == nil {
		return id, nil
	}
	var id firn.ID
	err := l.retry(ctx, func(g *firn.Generator) (err error) {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// Append appends n ids to dst. Errors are those of Next; with one it returns dst
// with the ids it got.
func (l *Lease) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	want := len(dst) + n
	if l.only != nil {
		var err error
		if dst, err = l.only.Load().Append(ctx, dst, n); err == nil {
			return dst, nil
		}
	}
	return l.appendOfLanes(ctx, dst, want)
}

func (l *Lease) appendOfLanes(ctx context.Context, dst []firn.ID, want int) ([]firn.ID, error) {
	for {
		first := l.at.Load()
		for i := range l.lanes {
			k := (int(first) + i) % len(l.lanes)
			dst, _ = l.lanes[k].gen.Load().TryAppend(dst, want-len(dst))
			if len(dst) >= want {
				l.at.Store(uint32(k))
				return dst, nil
			}
		}
		var id firn.ID
		err := l.retry(ctx, func(g *firn.Generator) (err error) {
			id, err = g.Next(ctx)
			return err
		})
		if err != nil {
			return dst, err
		}
		dst = append(dst, id)
	}
}

// try is Next without waiting: [firn.ErrBusy] where Next would wait for the
// clock, and the generator's error where it would wait for a worker.
func (l *Lease) try() (firn.ID, error) {
	// A lane is drawn from until its tick is used up, and then the next one: so
	// ids increase in long runs, and what the lanes share is seldom written.
	first := l.at.Load()
	var refused error
	for i := range l.lanes {
		k := (int(first) + i) % len(l.lanes)
		id, err := l.lanes[k].gen.Load().Try()
		if err == nil {
			if i > 0 {
				l.at.Store(uint32(k))
			}
			return id, nil
		}
		if refused == nil || errors.Is(err, firn.ErrBusy) {
			refused = err
		}
	}
	return 0, refused
}

// retry tries a lane whose worker is held, and again after every change of the
// lease's state, as long as the lease is at work on what keeps the call from
// succeeding.
func (l *Lease) retry(ctx context.Context, try func(*firn.Generator) error) error {
	for {
		changed := l.onChange()
		if l.delegated.Load() != nil {
			return delegatedError{}
		}
		ln := l.best()
		gen := ln.gen.Load()
		if err := l.late(ln.state.Load()); err != nil {
			return err
		}
		err := try(gen)
		var spent *firn.HorizonError
		if !errors.As(err, &spent) && !errors.Is(err, firn.ErrClosed) {
			return err
		}
		var lost *term.LostError
		var file *GrantFileError // it stops ids before the horizon does
		switch now := ln.state.Load(); {
		case l.closed.Load():
			return firn.ErrClosed
		case now.StoreAway && (spent == nil || !spent.Horizon.Before(now.EndsAt)):
			return &OutageError{EndedAt: now.EndsAt, AwaySince: now.AwaySince, Err: now.Err}
		case now.Err != nil && (!now.StoreAway || errors.As(now.Err, &file)) && !errors.As(now.Err, &lost):
			return now.Err
		}
		select {
		case ln.nudge <- struct{}{}:
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// late returns an error where the ids of a lane start later than a call waits for them.
func (l *Lease) late(now *State) error {
	own := time.Now().Add(-now.Offset)
	if l.wait == 0 || !now.held() || !now.StartsAt.After(own.Add(l.wait)) {
		return nil
	}
	return &NotYetError{Pool: now.Pool, StartsAt: now.StartsAt, Why: now.waits}
}

// best returns the lane to wait at: of those that hold a worker, the one whose ids start
// first, and of those the one that may issue longest; else any.
func (l *Lease) best() *lane {
	best := l.lanes[0]
	for _, ln := range l.lanes[1:] {
		if ln.state.Load().better(best.state.Load()) {
			best = ln
		}
	}
	return best
}

// onChange returns a channel that is closed at the next change of state.
func (l *Lease) onChange() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// change wakes the calls that wait for a change of state.
func (l *Lease) change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// State returns the state of the lease now. With several lanes it is that of the lane whose ids start
// first; of several such lanes, of the one that can issue longest.
func (l *Lease) State() State { return *l.best().state.Load() }

// Lanes returns where each lane stands now.
func (l *Lease) Lanes() []State {
	all := make([]State, len(l.lanes))
	for i, ln := range l.lanes {
		all[i] = *ln.state.Load()
	}
	return all
}

// Close stops issuing for good and gives the workers back. It waits for the
// store, at most 5 s. Calls that wait return [firn.ErrClosed].
//
// An error says that a worker was not given back: it then falls free by itself, when
// its time to live has passed. Or it is a [*GrantFileError]: the grant file could not
// be made void, so a process that starts with it resumes the old grant. Close may be
// called more than once.
func (l *Lease) Close() error {
	l.closed.Store(true)
	l.stop()
	l.done.Wait()
	l.change() // for calls that wait: no keeper may be left to wake them
	var errs []error
	for _, ln := range l.lanes {
		errs = append(errs, ln.ended)
	}
	return errors.Join(errs...)
}
