package sequence

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/supply"
	"github.com/firn-id/firn/store"
)

// An ExistsError says that a series cannot be created because it is there.
type ExistsError struct{ Info Info }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("sequence: series %q exists already, and has granted numbers up to %d", e.Info.Name, e.Info.Granted)
}

// Retryable is false; see firn.Retryable.
func (*ExistsError) Retryable() bool { return false }

// A LostError says that a series is not created, because the store may have lost a series of this
// name, whose numbers would be issued again: the store was recovered, or pool.Ensure created a
// pool there. Set Options.First above
// every number in use, or Options.New where no series of this name ever existed.
type LostError struct{ Name string }

func (e *LostError) Error() string {
	return fmt.Sprintf("sequence: the store may have lost a series %q, because it was recovered or a pool was created there by Ensure: say where a new one begins (First), or that there never was one (New)", e.Name)
}

// Retryable is false; see firn.Retryable.
func (*LostError) Retryable() bool { return false }

// A MissingError says that a store has no series of that name: the name is mistyped, or
// there never was one, or the store has lost it.
type MissingError struct {
	Name      string
	Names     []string // those that the store has; nil where nobody has looked
	Nearest   string   // that one of them which was probably meant; "" if none is like it
	MayBeLost bool     // the store was recovered, or pool.Ensure created a pool there: [Create] wants Options.New of a series that never existed
}

func (e *MissingError) Error() string {
	lead, flag := ": ", ""
	switch {
	case e.Names == nil:
		return e.Reason()
	case e.Nearest != "":
		lead = " Otherwise, "
	case len(e.Names) == 0:
		lead = ": if your other programs use another store, open that one; "
	}
	if e.MayBeLost {
		flag = " --new"
	}
	create := "firn series create " + e.Name + " --kind sequence"
	return fmt.Sprintf("%s%sif it existed, or the store was restored or lost: %s --first N --store URL, with N above every number in use; only if it never existed: %s%s --store URL", e.Reason(), lead, create, create, flag)
}

// Reason is Error without what to do next.
func (e *MissingError) Reason() string {
	text := fmt.Sprintf("sequence: the store has no series %q", e.Name)
	if e.Nearest != "" {
		return text + fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

// Retryable is false; see firn.Retryable.
func (*MissingError) Retryable() bool { return false }

// An EndError says that a series has not as many numbers left as a call asks for.
type EndError struct {
	Name string
	Max  int64
	Left int64 // how many are left, here and in the store; 0: it has come to its end
}

func (e *EndError) Error() string {
	end := fmt.Sprintf("its max is %d", e.Max)
	if e.Max == math.MaxInt64 {
		end = "no larger number fits 63 bits"
	}
	if e.Left > 0 {
		return fmt.Sprintf("sequence: series %q has only %s left, not enough for this call: %s", e.Name, numbers(e.Left), end)
	}
	return fmt.Sprintf("sequence: series %q is used up: %s", e.Name, end)
}

// Retryable is false; see firn.Retryable.
func (*EndError) Retryable() bool { return false }

// A LossyError says that a series is refused, because the store is lossy
// and Options.MayRepeat does not accept that.
type LossyError struct {
	Name  string
	Why   string // what was seen of the store
	Since bool   // the store was durable when the series was created
}

func (e *LossyError) Error() string {
	if e.Since {
		return fmt.Sprintf("sequence: series %q: the store may lose a write that it acknowledged (%s), and could not when the series was created. "+
			"If it loses one, numbers repeat: no clock can tell how far a counter had gone", e.Name, e.Why)
	}
	return fmt.Sprintf("sequence: series %q: the store is lossy: it can lose a write that it acknowledged (%s), and then numbers repeat: "+
		"no clock can tell how far a counter had gone", e.Name, e.Why)
}

// Retryable is false; see firn.Retryable.
func (*LossyError) Retryable() bool { return false }

// An OutageError says that fewer numbers are in hand than a call asks for, and the
// store has not granted more for as long as the call waits. They come again by
// themselves; the call has used up none.
type OutageError struct {
	Name string
	Want int           // how many numbers the call asked for
	Left int64         // how many are in hand: a call for so many would be served
	Wait time.Duration // how long the store has not answered, or the call has waited
	Err  error         // what came of the last request; nil while it is under way
}

func (e *OutageError) Error() string {
	hand := "no number in hand"
	if e.Left > 0 {
		hand = fmt.Sprintf("%s in hand, fewer than the %d asked for", numbers(e.Left), e.Want)
	}
	text := fmt.Sprintf("sequence: series %q has %s", e.Name, hand)
	if !errors.Is(e.Err, store.ErrDenied) {
		text += fmt.Sprintf(", and the store has granted none for %s", e.Wait.Round(time.Millisecond))
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Retryable is true; see firn.Retryable.
func (*OutageError) Retryable() bool { return true }

func (e *OutageError) Unwrap() error { return e.Err }

// explain returns the error that calls get for one of the packages internal/block and
// internal/supply.
func explain(name string, err error) error {
	if out := (*supply.Outage)(nil); errors.As(err, &out) {
		return &OutageError{Name: name, Want: out.Want, Left: out.Left, Wait: out.Wait, Err: out.Err}
	}
	var no *block.Refusal
	if !errors.As(err, &no) {
		return err
	}
	switch no.Why {
	case block.Missing:
		return &MissingError{Name: name}
	case block.Ended:
		return &EndError{Name: name, Max: no.Max, Left: no.Left}
	}
	return &LossyError{Name: name, Why: no.Seen, Since: no.Since}
}

// nextStep says what whoever runs the store does about an error that ends a series.
func nextStep(err error) string {
	var forgot *store.ForgotError
	var other *store.OtherStoreError
	var missing *MissingError
	if errors.As(err, &forgot) || errors.As(err, &other) || errors.As(err, &missing) {
		return record.Recovery(err, " --numbers N", " (add --outage if any process of a pool had an outage budget of more than 5 min)")
	}
	return "firn doctor --store URL, with the URL of the store, says what is wrong; the series issues again when a process opens it anew after that is mended"
}

// numbers counts numbers in words.
func numbers(n int64) string {
	if n == 1 {
		return "1 number"
	}
	return fmt.Sprintf("%d numbers", n)
}
