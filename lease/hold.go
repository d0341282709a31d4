package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A Held is a worker that is held for a program with a generator of its own.
//
// It is a fence of another kind than a [Lease]: what that program issues is not
// tested against the grant, so it has to be stopped in time. That is good while
// the clocks of all holders and of the store agree within 5 s, and it does not
// survive a pause of the program between its clock reading and its use.
type Held struct {
	lease  *Lease
	clocks func() term.Now // the system's
	last   term.Now        // as last looked at
}

// Hold takes a worker and returns when this system's clock is above everything
// that its holders before may have issued. It does not replace a worker that it
// lost. Options.Lanes and File are not for it.
func Hold(ctx context.Context, s store.Store, opts *Options) (*Held, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Lanes > 1 || o.File != "" {
		return nil, errors.New("lease: a held worker has neither lanes nor a grant file")
	}
	// A foreign generator begins at the clock, and borrows what it likes.
	o.foreign, o.Borrow = true, -1
	l, err := Open(ctx, s, &o)
	if err != nil {
		return nil, err
	}
	h := &Held{lease: l, clocks: o.withDefaults().clocks}
	h.last = h.clocks()
	return h, nil
}

// State returns where the lease stands now.
func (h *Held) State() State { return h.lease.State() }

// A StepError says that the system's clock has stepped since the worker was
// taken, so that what is issued by it is not covered.
type StepError struct{ Offset time.Duration }

func (e *StepError) Error() string {
	return fmt.Sprintf("lease: the system's clock has stepped by %s", e.Offset.Round(time.Millisecond))
}

// Watch returns nil when ctx is done, or why the program has to be stopped: it
// then has grace left to end, counted in the horizon, where the worker was not
// lost already. One goroutine may call it at a time.
func (h *Held) Watch(ctx context.Context, grace time.Duration) error {
	for {
		changed := h.lease.onChange()
		now, clock := h.State(), h.clocks()
		step := clock.Wall.Sub(h.last.Wall) - (clock.Boot - h.last.Boot)
		h.last = clock
		if now.Offset.Abs() > step.Abs() {
			step = now.Offset
		}
		switch {
		case now.Phase != term.Holding && now.Err != nil:
			return now.Err
		case now.Phase != term.Holding:
			return fmt.Errorf("lease: worker %d is not held: %s", now.Worker, now.Phase)
		case step.Abs() > term.Skew:
			return &StepError{step}
		case now.Left(clock.Wall) <= grace:
			return &OutageError{Horizon: now.Horizon, Err: now.Err}
		}
		t := time.NewTimer(look)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// Close gives the worker back, from 5 s after now on, when the program has
// ended. It errs as [Lease.Close] does.
func (h *Held) Close() error { return h.lease.Close() }
