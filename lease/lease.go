// Package lease gives a process a worker number that nobody else has, from a
// store it already has, and a source of ids that keeps it.
//
// Start with [Open]:
//
//	st, err := sqlite.Open("ids.db")
//	...
//	ids, err := lease.Open(ctx, st, "web", nil)
//	...
//	defer ids.Close()
//	id, err := ids.Next(ctx)
//
// Workers of a pool are recycled: who stops gives its worker back, and that of
// a process that died falls free when it was not heard of for its time to live.
// A worker's record holds the highest tick that its holders may have issued,
// written down before anything up to it was; whoever takes the worker next
// starts above it. Why that is enough is in package term, which decides; this
// package performs what it asks.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A Lease holds a worker of a pool and issues ids with it. It extends, loses
// and takes one again by itself. It is a [firn.Source]; all its methods may be
// called from many goroutines at once.
//
// Ids of one lease increase strictly while it holds one worker. After a loss it
// goes on with another worker, and increases by time.
type Lease struct {
	gen   atomic.Pointer[firn.Generator] // of the current term, or of the last
	state atomic.Pointer[State]

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when state changes
	nudge   chan struct{} // a caller found the grant used up

	stop   context.CancelFunc
	done   chan struct{} // closed when the keeper has ended
	ended  error         // what Close returns; set before done
	closed atomic.Bool
}

var _ firn.Source = (*Lease)(nil)

// An OutageError says that a grant is used up because the store does not
// answer. Ids come again by themselves when it does.
type OutageError struct {
	Horizon time.Time // the last instant that was granted
	Err     error     // what came of the last request
}

func (e *OutageError) Error() string {
	return fmt.Sprintf("lease: the store does not answer, and nothing is granted after %s: %v", e.Horizon.Format(time.RFC3339Nano), e.Err)
}

func (e *OutageError) Unwrap() error { return e.Err }

// Open joins a pool and returns when the first id can be issued, or ctx is
// done; the lease outlives ctx. Close gives the worker back.
//
// Errors to tell apart, besides the store's: [*term.FullError], no worker is
// free; [*term.LayoutError], the pool has another layout; [*term.ClockError],
// this clock is ahead of the store's; [*term.AwayError], the store does not
// answer; [*store.ForgotError]; [*firn.EndError], the layout has ended.
func Open(ctx context.Context, s store.Store, pool string, opts *Options) (*Lease, error) {
	o := opts.withDefaults()
	if err := o.validate(pool); err != nil {
		return nil, err
	}
	if err := o.Layout.Check(o.clocks().Wall); err != nil {
		return nil, err
	}
	p, err := s.Promise(ctx)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lease{
		stop: stop, done: make(chan struct{}),
		changed: make(chan struct{}), nudge: make(chan struct{}, 1),
	}
	first := make(chan opened, 1)
	k := &keeper{
		lease: l, store: s, promise: p, options: o, rules: o.rules(pool, p),
		log: o.Logger.With("pool", pool), opened: first,
	}
	go k.run(life)
	if err := l.awaitOpen(ctx, first); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// awaitOpen waits for the first worker, and for its first tick.
func (l *Lease) awaitOpen(ctx context.Context, first <-chan opened) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case o := <-first:
		if o.err != nil || o.delay <= 0 {
			return o.err
		}
		t := time.NewTimer(o.delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}
}

// Next returns the next id. It waits where the sequence of a tick is used up,
// and while a lost worker is replaced.
//
// Errors: [*OutageError] while the store is away for longer than the outage
// budget, [*store.ForgotError] once it has forgotten (final), those of [Open]
// while no worker can be had, [*firn.EndError] at the layout's end,
// [firn.ErrClosed] after Close, and ctx's.
func (l *Lease) Next(ctx context.Context) (firn.ID, error) {
	id, err := l.gen.Load().Next(ctx)
	if err == nil {
		return id, nil
	}
	return l.nextAgain(ctx)
}

func (l *Lease) nextAgain(ctx context.Context) (id firn.ID, err error) {
	err = l.retry(ctx, func() (err error) {
		id, err = l.gen.Load().Next(ctx)
		return err
	})
	return id, err
}

// Append appends n ids to dst. Errors are those of Next; with one it returns dst
// with the ids it got.
func (l *Lease) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	want := len(dst) + n
	dst, err := l.gen.Load().Append(ctx, dst, n)
	if err == nil {
		return dst, nil
	}
	return l.appendAgain(ctx, dst, want)
}

func (l *Lease) appendAgain(ctx context.Context, dst []firn.ID, want int) ([]firn.ID, error) {
	err := l.retry(ctx, func() (err error) {
		dst, err = l.gen.Load().Append(ctx, dst, want-len(dst))
		return err
	})
	return dst, err
}

// Try is Next without waiting: firn.ErrBusy where Next would wait for the clock,
// and the generator's error where it would wait for the lease.
func (l *Lease) Try() (firn.ID, error) { return l.gen.Load().Try() }

// retry tries again after every change of the lease's state, as long as the
// lease is at work on what keeps the call from succeeding.
func (l *Lease) retry(ctx context.Context, try func() error) error {
	for {
		changed := l.onChange()
		err := try()
		var spent *firn.HorizonError
		if !errors.As(err, &spent) && !errors.Is(err, firn.ErrClosed) {
			return err
		}
		var lost *term.LostError
		switch now := l.state.Load(); {
		case l.closed.Load():
			return firn.ErrClosed
		case now.Degraded:
			return &OutageError{Horizon: now.Horizon, Err: now.Err}
		case now.Err != nil && !errors.As(now.Err, &lost):
			return now.Err
		}
		select {
		case l.nudge <- struct{}{}:
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// onChange returns a channel that is closed at the next change of state.
func (l *Lease) onChange() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// State returns where the lease stands now.
func (l *Lease) State() State { return *l.state.Load() }

// Close stops issuing for good and gives the worker back. It waits for the
// store, at most 5 s. An error says that the worker was not given back: it then
// falls free by itself, when its time to live has passed. Close may be called
// more than once.
func (l *Lease) Close() error {
	l.closed.Store(true)
	l.stop()
	<-l.done
	return l.ended
}
