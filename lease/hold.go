package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Worker is a worker that is held for a program with a generator of its own.
//
// It is a fence of another kind than a [Lease]: what that program issues is not
// tested against the grant, so it has to be stopped in time. That is good while
// the clocks of all holders and of the store agree within 5 s, and it does not
// survive a pause of the program between its clock reading and its use.
type Worker struct {
	lease  *Lease
	clocks func() term.Now // the system's
	last   term.Now        // as last looked at
}

// Hold takes a worker and returns when this system's clock is above everything
// that its holders before may have issued. It does not replace a worker that it
// lost. Options.Lanes and File are not for it.
func Hold(ctx context.Context, s store.Store, opts *Options) (*Worker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Lanes > 1 || o.GrantFile != "" {
		return nil, errors.New("lease: a held worker has neither lanes nor a grant file")
	}
	// A foreign generator begins at the clock, and borrows what it likes.
	o.foreign, o.MaxAhead = true, -1
	l, err := Open(ctx, s, &o)
	if err != nil {
		return nil, err
	}
	h := &Worker{lease: l, clocks: o.withDefaults().clocks}
	h.last = h.clocks()
	return h, nil
}

// State returns where the lease stands now.
func (h *Worker) State() State { return h.lease.State() }

// A StepError says that the system's clock has stepped since the worker was
// taken, so that what is issued by it is not covered. Stop the program at once, and Hold
// again when the clock is right.
type StepError struct{ Offset time.Duration }

func (e *StepError) Error() string {
	return fmt.Sprintf("lease: the system's clock has stepped by %s", e.Offset.Round(time.Millisecond))
}

// A LateError says that the grant of a held worker was not extended in time, although
// the store has not failed to answer. Stop the program before the horizon, and Hold again.
type LateError struct {
	Horizon time.Time // the last instant that was granted
}

func (e *LateError) Error() string {
	return "lease: nothing is granted after " + e.Horizon.Format(time.RFC3339Nano) +
		", and it was not extended in time: this process or its host was paused, or the store is slow"
}

// MostGrace returns the longest grace that [Worker.Watch] accepts with an outage budget: half
// of the first and shortest grant, so 5 s for a budget of 10 s or more. The other half is
// for extending the grant, again and again, while nothing is wrong.
func MostGrace(outage time.Duration) time.Duration { return min(outage, term.Reach) / 2 }

// Watch blocks until ctx is done, and returns nil, or until the program has to be stopped,
// and returns why. Unless the worker was lost, at least grace is then left before the
// grant ends; after a pause of this process it may be less. One goroutine may call it at
// a time.
//
// Errors: [*OutageError], the store does not answer; [*LateError], the grant was not
// extended for another reason; [*StepError]; [*LostError] and the other errors with
// which a worker is lost. A grace above [MostGrace] of [State.Budget] is an [*OptionError].
func (h *Worker) Watch(ctx context.Context, grace time.Duration) error {
	budget := h.State().Budget
	if most := MostGrace(budget); grace > most {
		return &OptionError{"grace", fmt.Sprintf("grace %s: with an outage budget of %s it is at most %s", grace, budget, most)}
	}
	for {
		changed := h.lease.onChange()
		now, clock := h.State(), h.clocks()
		step := clock.Wall.Sub(h.last.Wall) - (clock.Boot - h.last.Boot)
		h.last = clock
		if now.Offset.Abs() > step.Abs() {
			step = now.Offset
		}
		switch {
		case !now.held() && now.Err != nil:
			return now.Err
		case !now.held():
			return fmt.Errorf("lease: worker %d is not held: %s", now.Worker, now.phase)
		case step.Abs() > term.Skew:
			return &StepError{step}
		case now.Left(clock.Wall) > grace:
		case now.StoreAway:
			return &OutageError{EndedAt: now.EndsAt, AwaySince: now.AwaySince, Err: now.Err}
		default:
			return &LateError{Horizon: now.EndsAt}
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
func (h *Worker) Close() error { return h.lease.Close() }
