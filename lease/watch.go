package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/term"
)

// This file finds out when a program that uses a [Worker] has to stop.

// defaultGrace is what a zero Options.Grace means where the outage budget allows it.
const defaultGrace = 3 * time.Second

// MostGrace returns the longest Options.Grace that an outage budget allows: half of the
// first and shortest grant, so 5 s for a budget of 10 s or more. The other half is for
// extending the grant, again and again, while nothing is wrong.
func MostGrace(outage time.Duration) time.Duration { return min(outage, term.Reach) / 2 }

// A StepError says that the system's clock has stepped since the worker was taken, so other
// processes may issue the ids that the program makes from now on. Stop the program at once,
// and Hold again when the clock is right.
type StepError struct{ Offset time.Duration }

func (e *StepError) Error() string {
	return e.Reason() + "; stop what uses the worker at once, set the clock, and call Hold again"
}

// Reason is Error without what to do next.
func (e *StepError) Reason() string {
	return fmt.Sprintf("lease: the system's clock has stepped by %s", e.Offset.Round(time.Millisecond))
}

// A LateError says that the grant of a worker was not extended in time, although the store
// answers. Stop the program before the grant ends, and Hold again.
type LateError struct {
	EndsAt time.Time // the last instant that was granted
}

func (e *LateError) Error() string {
	return e.Reason() + "; stop what uses the worker, and call Hold again"
}

// Reason is Error without what to do next.
func (e *LateError) Reason() string {
	return fmt.Sprintf("lease: the worker's grant ends at %s, and it was not extended in time, because this process or its host was paused, or the store is slow",
		e.EndsAt.UTC().Format(time.RFC3339))
}

// await returns once the grant lasts longer than the grace: a store that was slow to answer
// may have used the first grant up, and then it is extended.
func (w *Worker) await(ctx context.Context, wait time.Duration) error {
	for began := w.last.Boot; ; {
		changed := w.lease.onChange()
		err := w.look()
		var outage *OutageError
		var late *LateError
		if !errors.As(err, &outage) && !errors.As(err, &late) || w.last.Boot-began > wait {
			return err
		}
		if !sleep(ctx.Done(), changed) {
			return ctx.Err()
		}
	}
}

// watch closes Done when the program has to stop. It returns then, or after Close.
func (w *Worker) watch() {
	for {
		changed := w.lease.onChange()
		if err := w.look(); err != nil {
			w.end(err)
			return
		}
		if !sleep(w.done, changed) {
			return
		}
	}
}

// look returns why the program has to stop, or nil.
func (w *Worker) look() error {
	now, clock := w.State(), w.clocks()
	step := clock.Wall.Sub(w.last.Wall) - (clock.Boot - w.last.Boot)
	w.last = clock
	if now.Offset.Abs() > step.Abs() {
		step = now.Offset
	}
	switch {
	case !now.held() && now.Err != nil:
		return now.Err
	case !now.held():
		return &LostError{Worker: w.number}
	case step.Abs() > term.Skew:
		return &StepError{step}
	case now.Left(clock.Wall) > w.grace:
		return nil
	case now.StoreAway:
		return &OutageError{EndedAt: now.EndsAt, AwaySince: now.AwaySince, Err: now.Err}
	default:
		return &LateError{EndsAt: now.EndsAt}
	}
}

// sleep waits for a change of state, but no longer than until the next look. It returns false
// where the wait is over for good.
func sleep(over, changed <-chan struct{}) bool {
	t := time.NewTimer(look)
	defer t.Stop()
	select {
	case <-over:
		return false
	case <-changed:
	case <-t.C:
	}
	return true
}

// longGrace says that the outage budget is too short for the grace.
func longGrace(grace, budget time.Duration) error {
	return &OptionError{"grace", fmt.Sprintf("grace %s: with an outage budget of %s it is at most %s", grace, budget, MostGrace(budget))}
}
