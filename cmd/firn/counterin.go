package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// otherKind returns an error if the store has a counter of the series' name of another kind. Two
// would hide each other: a name stands for one counter.
func (d *drawing) otherKind(ctx context.Context, st store.Store) error {
	there, err := countername.Counter(ctx, st, d.Name)
	if err == nil && there == nil {
		return countername.SameKind(ctx, st, d.Series)
	}
	if err != nil || there.Kind == d.Kind {
		return err
	}
	if there.Template != "" {
		return kindHints(ui.Failed("%w", &countername.KindError{Name: d.Name, Want: d.Kind, Have: *there}), &countername.KindError{Name: d.Name, Want: d.Kind, Have: *there, Listed: d.Listed})
	}
	f := ui.Failed("the store has a %s of the name %s already, and a name stands for one counter", there.Kind, d.Name)
	if d.Listed {
		return kindHints(f, &countername.KindError{Name: d.Name, Want: d.Kind, Have: *there, Listed: true})
	}
	return f.HintOtherKind("to draw from the %s: firn next %s", there.Kind, phrase.ShellWord(d.Name)).
		Hint("to have a %s, give it another name", d.Kind)
}

// lookUp finds out whether the store has a counter of the name that a command draws
// from, before the name is taken for that of a flake.
func (s *settings) lookUp(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	one, err := s.SeriesNamed(name)
	switch {
	case err != nil:
		return err
	case one != nil && one.Kind.Text != config.Flake:
		return nil // opening the series tells
	}
	st, err := open.Store(ctx, s.StoreURL().Text, nil)
	switch {
	case errors.As(err, new(*open.NoStoreError)):
		return nil
	case err != nil:
		return err
	}
	defer st.Close()
	s.counter, err = countername.Counter(ctx, st, name)
	switch {
	case err != nil && s.Resumes(name):
		return nil
	case err != nil || s.counter != nil || one != nil || s.KindSaid():
		return err
	}
	near, err := countername.Misspelled(ctx, st, name)
	switch {
	case err != nil:
		return err
	case near == "":
		s.noCounter = true
		return s.notLost(ctx, st, name)
	}
	return ui.Bad("%s has no counter %q, and one of nearly that name: %s", fromurl.Redact(whichstore.Text(s.StoreURL().Text)), name, near).
		Hint("to draw from the counter: firn next %s", drawWord(near)).
		Hint("to draw ids with a time all the same: firn next %s --kind flake", name)
}

// notLost returns an error if the store may have lost a counter of that name: an id
// in place of its next number would be found too late.
func (s *settings) notLost(ctx context.Context, st store.Store, name string) error {
	lost, err := countername.MayHaveLost(ctx, st)
	if err != nil || !lost {
		return err
	}
	return lostNameHints(maybeLost(s.StoreURL().Text, name), name).
		Hint("if %s has ids with a time: firn next %s --kind flake", name, phrase.ShellWord(name))
}

// maybeLost is the error of a name that no counter has of a store that may have lost some.
func maybeLost(url, name string) *ui.Failure {
	return ui.Bad("%w", &countername.LostNameError{Store: fromurl.Redact(whichstore.Text(url)), Name: name})
}

// lostNameHints says how a counter that was lost is created again, where its kind is not known.
func lostNameHints(f *ui.Failure, name string) *ui.Failure {
	return f.Hint("if it was a sequence: firn series create %s --kind sequence --first N, with N above every number in use", phrase.ShellWord(name)).
		Hint("if it was a document: firn series create %s --pattern PATTERN --after TEXT, with PATTERN that of its programs, and TEXT the last one given out", phrase.ShellWord(name))
}

// mayBeNew sees to it that nobody creates a counter again by mistake that the store has
// lost: somebody says where the counter begins, by first or after, or that there never was one.
func (d *drawing) mayBeNew(cmd *cobra.Command, stores []store.Store) (claimed bool, err error) {
	claimed = saidBy(cmd.Flags().Lookup("new"))
	for _, flag := range []string{"first", "after"} {
		if f := cmd.Flags().Lookup(flag); claimed || f != nil && saidBy(f) {
			return true, nil
		}
	}
	for i, st := range stores {
		there, err := countername.Counter(cmd.Context(), st, d.Name)
		if err != nil || there != nil {
			return false, err
		}
		switch lost, err := countername.MayHaveLost(cmd.Context(), st); {
		case err != nil:
			return false, err
		case !lost:
			continue
		}
		if p := ui.PersonAt(cmd); p != nil {
			return true, p.Agree(cmd.Context(), fmt.Sprintf("Create the %s %s? The store may have lost it: only if it never existed", d.Kind, d.Name))
		}
		return false, d.maybeLost(d.URLs[i])
	}
	return true, nil
}

// maybeLost is the error of a series that a store may have lost, and says how it is created again.
func (d *drawing) maybeLost(url string) *ui.Failure {
	again, where := d.createCommand(), "--first N, with N above every number in use"
	if d.Kind == config.Document {
		where = "--after TEXT, with TEXT the last one given out"
		if template.Is(d.Name) {
			where = "--after TEXT, with TEXT the one with the highest count that any name gave out"
		}
	}
	return maybeLost(url, d.Name).
		Hint("if it existed: %s %s", again, where).
		Hint("only if it never existed: %s --new", again)
}
