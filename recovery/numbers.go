package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/sequence"
)

// This file is about how many numbers series leave out: too few repeat numbers, and too many
// leave a series none.

// A NumbersError says that nobody has said how many numbers some series leave out.
type NumbersError struct{ Series []string }

func (e *NumbersError) Error() string {
	return "recovery: how many numbers these series leave out is not said: " + strings.Join(e.Series, ", ")
}

// Retryable is false; see firn.Retryable.
func (*NumbersError) Retryable() bool { return false }

// An UnknownSeriesError says that the store has no series of a name in [Options.Each].
type UnknownSeriesError struct {
	Series string
	Have   []string
}

func (e *UnknownSeriesError) Error() string {
	return fmt.Sprintf("recovery: the store has no series %q that counts", e.Series)
}

// Retryable is false; see firn.Retryable.
func (*UnknownSeriesError) Retryable() bool { return false }

// A UsedUpError says that [Options.Numbers] would leave some series no number. A series that
// Each names may be used up: that was meant.
type UsedUpError struct {
	Numbers int64
	UsedUp  []UsedUp
}

func (e *UsedUpError) Error() string {
	var names []string
	for _, u := range e.UsedUp {
		names = append(names, u.Series)
	}
	return fmt.Sprintf("recovery: to leave out %d numbers would leave no number to series %s", e.Numbers, strings.Join(names, ", "))
}

// Retryable is false; see firn.Retryable.
func (*UsedUpError) Retryable() bool { return false }

// A UsedUp is a series that a recovery leaves no number.
type UsedUp struct {
	Series  string
	Pattern string // of a document; "": it is a sequence
	Period  string // of a document: there are numbers again when it is over; "": never
	Max     int64  // its last number
}

// checkNumbers returns an error where the numbers to leave out cannot be meant.
func (p *Plan) checkNumbers() error {
	series, each := p.Series(), p.Options.Each
	for _, name := range slices.Sorted(maps.Keys(each)) {
		if !slices.Contains(series, name) {
			return &UnknownSeriesError{name, series}
		}
	}
	left := slices.DeleteFunc(series, func(name string) bool { return each[name] > 0 })
	if len(left) > 0 && p.Options.Numbers <= 0 {
		return &NumbersError{left}
	}
	return nil
}

// usedUp returns the series that these numbers leave none.
func (p *Plan) usedUp(ctx context.Context) (all []UsedUp, err error) {
	numbers := max(p.Options.Numbers, 1)
	sequences, err := sequence.PlanRecovery(ctx, p.store, numbers, p.Options.Each)
	if err != nil {
		return nil, err
	}
	for _, r := range sequences {
		if r.Info.Left == 0 {
			all = append(all, UsedUp{Series: r.Series, Max: int64(r.Info.Max)})
		}
	}
	documents, err := document.PlanRecovery(ctx, p.store, numbers, p.Options.Each)
	if err != nil {
		return nil, err
	}
	patterns := map[string]string{}
	for _, one := range p.Documents {
		patterns[one.Name] = one.Pattern
	}
	for _, r := range documents {
		if r.IsFull {
			all = append(all, UsedUp{Series: r.Series, Pattern: patterns[r.Series], Period: r.Full, Max: r.Max})
		}
	}
	return all, nil
}

// refuse returns an error where a number that was meant for all series uses one up. Whoever
// names the series means that one.
func (p *Plan) refuse() error {
	unnamed := slices.DeleteFunc(slices.Clone(p.UsedUp), func(u UsedUp) bool { return p.Options.Each[u.Series] > 0 })
	if len(unnamed) == 0 {
		return nil
	}
	return &UsedUpError{p.Options.Numbers, unnamed}
}
