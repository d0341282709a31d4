package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// A counterSeries is a series of numbers or texts that a store has. Nothing in a
// store says that a name is a flake: that is every name without a counter.
type counterSeries struct {
	kind    string // segment, ticket or serial
	pattern string // of a serial, as is zone
	zone    string
}

// counterIn returns the counter of that name, or nil if the store has none. A store
// that does not answer is an error: an id is no substitute for a number.
func counterIn(ctx context.Context, st store.Store, name string) (*counterSeries, error) {
	numbers, err := sequence.Show(ctx, st, name)
	var noNumbers *sequence.MissingError
	switch {
	case err == nil && numbers.Stores > 1:
		return &counterSeries{kind: kindTicket}, nil
	case err == nil:
		return &counterSeries{kind: kindSegment}, nil
	case !errors.As(err, &noNumbers):
		return nil, err
	}
	texts, err := document.Show(ctx, st, name)
	var noTexts *document.MissingError
	switch {
	case err == nil:
		return &counterSeries{kindSerial, texts.Pattern, texts.Zone}, nil
	case !errors.As(err, &noTexts):
		return nil, err
	}
	return nil, nil
}

// otherKind returns an error if the store has a counter of that name of another kind. Two would
// hide each other: a name stands for one counter.
func otherKind(ctx context.Context, st store.Store, name string, kinds ...string) error {
	there, err := counterIn(ctx, st, name)
	if err != nil || there == nil || slices.Contains(kinds, there.kind) {
		return err
	}
	return ui.Failed("the store has a %s of the name %s already, and a name stands for one counter", there.kind, name).
		Hint("take another name; to draw from the %s: firn next %s", there.kind, name)
}

// ofOther returns another error in place of one that says that the store has no counter of the name and
// kind of a drawing, where it has one of the other kind: to create a second one is refused.
func (d *drawing) ofOther(ctx context.Context, st store.Store, err error) error {
	if !errors.As(err, new(*sequence.MissingError)) && !errors.As(err, new(*document.MissingError)) {
		return err
	}
	there, failing := counterIn(ctx, st, d.name)
	if failing != nil || there == nil {
		return err
	}
	name, f := phrase.ShellWord(d.name), ui.Failed("%s is a %s, and this command is for %ss", d.name, there.kind, d.kind)
	var before *ui.Failure
	if errors.As(err, &before) {
		f.Code = before.Code
	}
	if there.kind == kindSerial {
		return f.Hint("to have it go on above a text: firn serials raise %s TEXT", name).
			Hint("to change its width or zone, with PATTERN the new one: firn serials change %s --pattern PATTERN", name)
	}
	return f.Hint("to have it go on above a number: firn segments raise %s N", name).
		Hint("to change how many numbers are reserved at a time: firn segments set %s --cache N", name)
}

// lookUp finds out whether the store has a counter of the name that a command draws
// from, before the name is taken for that of a flake.
func (s *settings) lookUp(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	one, err := s.seriesNamed(name)
	switch {
	case err != nil:
		return err
	case one != nil && one.kind.text != kindFlake:
		return nil // opening the series tells
	}
	st, err := openURL(ctx, s.storeURL().text, nil)
	switch {
	case errors.Is(err, errNoStore):
		return nil
	case err != nil:
		return err
	}
	defer st.Close()
	s.counter, err = counterIn(ctx, st, name)
	switch {
	case err != nil && s.resumes(name, one):
		return nil
	case err != nil || s.counter != nil || one != nil || s.kindSaid():
		return err
	}
	near, err := misspelled(ctx, st, name)
	switch {
	case err != nil:
		return err
	case near == "":
		return s.notLost(ctx, st, name)
	}
	return ui.Bad("%s has no counter %q, and one of nearly that name: %s", open.Redact(storeText(s.storeURL().text)), name, near).
		Hint("to draw from the counter: firn next %s", near).
		Hint("to draw ids with a time all the same: firn next %s --kind flake", name)
}

// notLost returns an error if a recovery of the store may have lost a counter of that name: an id
// in place of its next number would be found too late.
func (s *settings) notLost(ctx context.Context, st store.Store, name string) error {
	recovered, err := wasRecovered(ctx, st)
	if err != nil || !recovered {
		return err
	}
	return maybeLost(open.Redact(storeText(s.storeURL().text)), name).
		Hint("if %s has ids with a time: firn next %s --kind flake", name, phrase.ShellWord(name))
}

// wasRecovered reports whether a store was made safe after it lost writes. It may have lost counters.
func wasRecovered(ctx context.Context, st store.Store) (bool, error) {
	rec, err := st.Get(ctx, block.KeyRecovered)
	return err == nil && rec.Version != "", err
}

// maybeLost is the error of a name that no counter of a store has which was recovered.
func maybeLost(at, name string) *ui.Failure {
	return ui.Bad("%w", &lostNameError{at, name}).
		Hint("if it was a segment: firn segments create %s --first N, with N above every number in use", phrase.ShellWord(name)).
		Hint("if it was a serial: firn serials create %s --pattern PATTERN; firn serials raise %s TEXT, with PATTERN that of its programs, and TEXT the last one given out", phrase.ShellWord(name), phrase.ShellWord(name))
}

// A lostNameError says that a store may have lost the counter of a name.
type lostNameError struct{ store, name string }

func (e *lostNameError) Error() string {
	return fmt.Sprintf("%s was recovered, and has no counter %q: it may have had one, which was lost", e.store, e.name)
}

// kindSaid reports whether somebody says of which kind the series is.
func (s *settings) kindSaid() bool {
	return s.value("kind", entry{}, "").text != "" || s.value("pattern", entry{}, "").text != ""
}

// misspelled returns the counter of the store that a name is probably a misspelling of; "" if
// there is none.
func misspelled(ctx context.Context, st store.Store, name string) (string, error) {
	names, err := counterNames(ctx, st)
	return nearest.Misspelled(name, names), err
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

// resumes reports whether a series is a flake by somebody's word, and may go on from
// a grant file while the store is away. Nobody guesses then.
func (s *settings) resumes(name string, one *seriesConfig) bool {
	said := one != nil || s.value("kind", entry{}, "").text == kindFlake
	if !said {
		return false
	}
	l, err := s.leasing(name)
	return err == nil && l.options.GrantFile != ""
}

// agrees returns an error if the store has a counter of that name and another kind.
func (c *counterSeries) agrees(name, kind, from string) error {
	if c == nil || c.kind == kind {
		return nil
	}
	return ui.Bad("%s: series %s cannot be of kind %s: the store has a %s of that name", from, name, kind, c.kind).
		Hint("firn next %s, without --kind and not in firn.yaml, draws from the %s; a series of kind %s needs another name", name, c.kind, kind)
}
