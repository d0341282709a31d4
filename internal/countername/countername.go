// Package countername looks up counters of a store by their names: which one has a name, what a store
// that lacks one may have lost, and which name somebody meant. It writes nothing.
package countername

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// Counter returns the counter of that name, or nil if the store has none. A name that belongs to a
// template has one, be it begun or not. A store
// that does not answer is an error: an id is no substitute for a number.
func Counter(ctx context.Context, st store.Store, name string) (*config.Counter, error) {
	numbers, err := sequence.Show(ctx, st, name)
	var noNumbers *sequence.MissingError
	switch {
	case err == nil:
		return &config.Counter{Kind: config.Sequence, Stores: numbers.Stores}, nil
	case !errors.As(err, &noNumbers):
		return nil, err
	}
	texts, err := document.Show(ctx, st, name)
	var noTexts *document.MissingError
	if errors.As(err, &noTexts) && noTexts.Template != "" { // it begins when it is opened
		texts, err = document.Show(ctx, st, noTexts.Template)
		texts.Template = noTexts.Template
	}
	switch {
	case err == nil:
		return &config.Counter{Kind: config.Document, Pattern: texts.Pattern, Zone: texts.Zone, Template: texts.Template}, nil
	case !errors.As(err, &noTexts):
		return nil, err
	}
	return nil, nil
}

// MayHaveLost reports whether a store may have lost counters: it was recovered, or a pool was
// created there by pool.Ensure.
func MayHaveLost(ctx context.Context, st store.Store) (bool, error) {
	return record.MayHaveLost(ctx, st)
}

// A LostNameError says that a store may have lost the counter of a name.
type LostNameError struct{ Store, Name string }

func (e *LostNameError) Error() string {
	return fmt.Sprintf("%s has no counter %q: it may have had one, which was lost, because the store was recovered, or a pool was created there by firn pool ensure", e.Store, e.Name)
}

// Retryable is false; see firn.Retryable.
func (*LostNameError) Retryable() bool { return false }

// Misspelled returns the counter of the store that a name is probably a misspelling of; "" if
// there is none.
func Misspelled(ctx context.Context, st store.Store, name string) (string, error) {
	names, err := counterNames(ctx, st)
	return nearest.Misspelled(name, names), err
}

// A NearNameError says that a counter is not created in a file, because the file has a counter
// of nearly that name, which firn.yaml does not list: one that was renamed or mistyped would
// begin again at its first number.
type NearNameError struct {
	Name, Kind, Near string
	Listed           bool // firn.yaml lists Name
}

func (e *NearNameError) Error() string {
	which := ""
	if e.Listed {
		which = ", which firn.yaml does not list"
	}
	return fmt.Sprintf("the store has no %s %q, and has a counter of nearly that name%s: %s", e.Kind, e.Name, which, e.Near)
}

// Retryable is false; see firn.Retryable.
func (*NearNameError) Retryable() bool { return false }

// CheckNew returns a [*NearNameError] where a series that is to be created in a file is probably
// another one of the store. Texts that could repeat, package document refuses by itself.
func CheckNew(ctx context.Context, st store.Store, d *config.Series) error {
	names, err := counterNames(ctx, st)
	if err != nil {
		return err
	}
	near := nearest.Misspelled(d.Defined(), slices.DeleteFunc(names, func(name string) bool { return slices.Contains(d.Others, name) }))
	if near == "" {
		return nil
	}
	there, err := Counter(ctx, st, near)
	if err != nil {
		return err
	}
	if d.Kind == config.Document && there != nil && there.Kind == config.Document {
		have, err := document.ParsePattern(there.Pattern)
		want, err2 := document.ParsePattern(d.Options.Document.Pattern)
		if err == nil && err2 == nil && have.Overlaps(want) {
			return nil
		}
	}
	return &NearNameError{Name: d.Defined(), Kind: d.Kind, Near: near, Listed: d.Listed}
}

// counterNames returns the names of all counters of a store.
func counterNames(ctx context.Context, st store.Store) (names []string, err error) {
	numbers, err := sequence.List(ctx, st)
	if err != nil {
		return nil, err
	}
	texts, err := document.List(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, one := range numbers {
		names = append(names, one.Name)
	}
	for _, one := range texts {
		names = append(names, one.Name)
	}
	return names, nil
}

// A KindError says that the store has a counter of another kind, or a sequence that is spread over
// several stores where the series is in one, or the other way round.
type KindError struct {
	Name   string
	Want   string // the kind of the series
	Across bool   // the series is spread over several stores
	Have   config.Counter
	Listed bool   // the series is in firn.yaml
	Taken  string // of a template: the sequence of the store whose name belongs to it
}

func (e *KindError) Error() string {
	switch {
	case e.Taken != "":
		return fmt.Sprintf("series %s cannot be a template: the store has the sequence %s, whose name begins so too, and a name stands for one counter", e.Name, e.Taken)
	case e.Want != e.Have.Kind:
	case e.Across:
		return fmt.Sprintf("series %s cannot be spread over several stores: this store has a sequence of that name for itself", e.Name)
	default:
		return fmt.Sprintf("series %s cannot be in one store: the store has a part of a sequence of that name, which is spread over %d stores", e.Name, e.Have.Stores)
	}
	if t := e.Have.Template; t != "" {
		return fmt.Sprintf("series %s cannot be of kind %s: the store has the template %s of documents, which the name belongs to", e.Name, e.Want, t)
	}
	return fmt.Sprintf("series %s cannot be of kind %s: the store has a %s of that name", e.Name, e.Want, e.Have.Kind)
}

// Retryable is false; see firn.Retryable.
func (*KindError) Retryable() bool { return false }

// noSequence returns an error if the store has a sequence whose name belongs to a new template. Of
// documents package document says so.
func noSequence(ctx context.Context, st store.Store, d *config.Series) error {
	all, err := sequence.List(ctx, st)
	if err != nil {
		return err
	}
	for _, one := range all {
		if template.Clash(d.Name, one.Name) {
			return &KindError{Name: d.Name, Want: d.Kind, Have: config.Counter{Kind: config.Sequence}, Listed: d.Listed, Taken: one.Name}
		}
	}
	return nil
}

// SameKind returns an error if a store has a counter of the series' name and of another kind, or of a
// template a sequence whose name belongs to it.
func SameKind(ctx context.Context, st store.Store, d *config.Series) error {
	there, err := Counter(ctx, st, d.Name)
	if err == nil && there == nil && template.Is(d.Name) {
		return noSequence(ctx, st, d)
	}
	if err != nil || there == nil || there.Kind == d.Kind && (there.Stores > 1) == d.Across() {
		return err
	}
	return &KindError{Name: d.Name, Want: d.Kind, Across: d.Across(), Have: *there, Listed: d.Listed}
}
