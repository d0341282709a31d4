package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Worker is a worker that is held for a program with an id generator of its own. All its
// methods may be called from many goroutines at once.
//
// A [Lease] tests each id against its grant. Nothing tests the ids of that program, so it
// has to stop in time: when [Worker.Done] is closed. That is safe while the clocks of all
// holders and of the store agree within 5 s, and while the program is not paused between
// reading its clock and using the id.
type Worker struct {
	lease  *Lease
	number int64
	fields map[string]int64
	grace  time.Duration
	clocks func() term.Now // the system's
	last   term.Now        // what they said at the last look

	mu   sync.Mutex
	done chan struct{}
	err  error // why done is closed
}

// Hold takes a worker. It returns when the system's clock is above everything that earlier
// holders may have issued. It blocks for as long as [Open] does, and its errors are those of
// Open and of [Worker.Err]. Hold never replaces a worker that it lost. Call Close when the
// program that uses the worker has ended.
//
// Options.Lanes, Options.GrantFile and Options.MaxAhead have no meaning here: Hold refuses
// the first two and ignores the third.
func Hold(ctx context.Context, s store.Store, opts *Options) (*Worker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.checkHold(); err != nil {
		return nil, err
	}
	// A foreign generator begins at the clock, and borrows what it likes.
	o.foreign, o.MaxAhead = true, -1
	l, err := Open(ctx, s, &o)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	w, err := l.worker(&o)
	if err == nil {
		err = w.await(ctx, o.Wait)
	}
	if err != nil {
		return nil, errors.Join(err, l.giveUp(ctx))
	}
	go w.watch()
	return w, nil
}

// checkHold refuses the options that only a [Lease] can have.
func (o *Options) checkHold() error {
	switch {
	case o.Lanes > 1:
		return &OptionError{"lanes", fmt.Sprintf("lanes %d: Hold holds one worker; call Hold once for each", o.Lanes)}
	case o.GrantFile != "":
		return &OptionError{"grant-file", fmt.Sprintf("grant-file %s: Hold has no grant file, only Open does; leave it out", o.GrantFile)}
	}
	return nil
}

// worker makes the worker of a lease that has one.
func (l *Lease) worker(o *Options) (*Worker, error) {
	now := l.State()
	most := MostGrace(now.Budget)
	if o.Grace > most {
		return nil, longGrace(o.Grace, now.Budget)
	}
	w := &Worker{
		lease: l, number: now.Worker, fields: maps.Collect(now.Layout.WorkerFields(now.Worker)), grace: o.Grace,
		clocks: o.clocks, last: o.clocks(), done: make(chan struct{}),
	}
	if w.grace == 0 {
		w.grace = min(defaultGrace, most)
	}
	return w, nil
}

// Number returns the number of the worker.
func (w *Worker) Number() int64 { return w.number }

// Fields returns the values of the layout's fields that make up the worker, by their names:
// "worker", or in the layout classic "datacenter" and "worker".
func (w *Worker) Fields() map[string]int64 { return maps.Clone(w.fields) }

// Grace returns how long before the end of the grant Done is closed: Options.Grace, or
// what its zero value means.
func (w *Worker) Grace() time.Duration { return w.grace }

// State returns where the lease stands now.
func (w *Worker) State() State { return w.lease.State() }

// Done returns a channel that is closed when the program has to stop, or after Close. It is
// closed at least [Worker.Grace] before the grant ends, unless the worker was lost or this process
// was paused. It never opens again: to continue, stop the program, Close, and Hold again.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Err returns nil until Done is closed, and then always the same error: [firn.ErrClosed]
// after Close; [*OutageError], the store does not answer; [*LateError], the grant was not
// extended in time for another reason; [*StepError], the system's clock has stepped;
// [*LostError], [*store.ForgotError] and the other errors with which a worker is lost.
func (w *Worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// end closes Done, for the first reason.
func (w *Worker) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.done)
	}
}

// Close gives the worker back. Call it when the program has ended: others may use the worker
// from 5 s after now on. It closes Done, waits for the store for at most 5 s, and returns an
// error where [Lease.Close] does. It may be called more than once.
func (w *Worker) Close() error {
	w.end(firn.ErrClosed)
	return w.lease.Close()
}
