package document

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// A FullError says that a template has as many names as it may have, so that a new name is not begun.
// The names that it has continue. [Widen] allows more.
type FullError struct {
	Template string
	Name     string // that was not begun
	Names    int    // how many names the template may have
}

func (e *FullError) Error() string {
	return fmt.Sprintf("document: template %s has %d names, as many as it may have, and %s is a new one", e.Template, e.Names, e.Name)
}

// Retryable is false; see firn.Retryable.
func (*FullError) Retryable() bool { return false }

// addName writes down that a template has a name, before the name counts anything. How many names there are is
// a record of its own, since to list them takes the longer the more there are. It is raised first, so that
// processes which add names at the same moment never pass the limit together. A process that is killed between
// the two writes leaves a place that is counted and has no name.
func addName(ctx context.Context, st store.Store, at dated.Place, def *dated.Definition) error {
	if at.Template == "" {
		return nil
	}
	there, err := hasName(ctx, st, at)
	if err != nil || there {
		return err
	}
	counted, err := countName(ctx, st, at, def.MostNames())
	if err != nil || !counted {
		return err
	}
	_, err = record.Create(ctx, st, at.Record(), record.Encode(dated.NameRecord{V: record.Format}))
	if errors.Is(err, store.ErrConflict) {
		return uncountName(ctx, st, at.Template) // another process was first, and has counted it
	}
	return err
}

// hasName reports whether a name is written down.
func hasName(ctx context.Context, st store.Store, at dated.Place) (bool, error) {
	rec, err := st.Get(ctx, at.Record())
	return rec.Version != "", err
}

// readCount reads how many names a template has, and the record that says so.
func readCount(ctx context.Context, st store.Store, template string) (n dated.NameRecord, rec store.Record, err error) {
	rec, err = st.Get(ctx, dated.KeyCount(template))
	if err == nil && rec.Version != "" {
		n, err = record.Read[dated.NameRecord](rec)
	}
	return n, rec, err
}

// A name that several processes begin at the same moment is counted by each of them until all but one have taken
// that back, or until the one that took the last place has written the name down. So a template that was changed less
// than settling ago is looked at again before it is full: for 1 s, since a store that is busy is slow, and requests to a
// server end after 2 s.
const (
	settling = 5 * time.Second
	firstLag = 25 * time.Millisecond // twice as long after each look
	lastLag  = 400 * time.Millisecond
	lookFor  = time.Second
)

// countName counts one name more, unless the name is there by then. The error is a [*FullError] if there are as many
// as there may be.
func countName(ctx context.Context, st store.Store, at dated.Place, most int) (counted bool, err error) {
	for lag, waited := firstLag, time.Duration(0); ; {
		n, rec, err := readCount(ctx, st, at.Template)
		if err != nil {
			return false, err
		}
		if n.Names < most {
			if done, err := writeCount(ctx, st, at.Template, n.Names+1, rec.Version); done {
				return err == nil, err
			}
			continue
		}
		if waited > lookFor || rec.Read.Sub(rec.Written) > settling {
			return false, &FullError{at.Template, at.Name, most}
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(lag):
		}
		waited, lag = waited+lag, min(2*lag, lastLag)
		if there, err := hasName(ctx, st, at); err != nil || there {
			return false, err
		}
	}
}

// uncountName counts one name less.
func uncountName(ctx context.Context, st store.Store, template string) error {
	for {
		n, rec, err := readCount(ctx, st, template)
		if err != nil || n.Names == 0 {
			return err
		}
		if done, err := writeCount(ctx, st, template, n.Names-1, rec.Version); done {
			return err
		}
	}
}

// writeCount writes how many names a template has. It is not done where another process was faster.
func writeCount(ctx context.Context, st store.Store, template string, names int, version store.Version) (done bool, err error) {
	n := dated.NameRecord{V: record.Format, Names: names}
	_, err = record.Write(ctx, st, dated.KeyCount(template), record.Encode(n), store.Condition{Version: version})
	return !errors.Is(err, store.ErrConflict), err
}

// locate returns where the series of a name is, and its definition: the name has one, or a template that it
// belongs to. A name of a template need not be there. The error is a [*MissingError] if the store has neither.
func locate(ctx context.Context, st store.Store, name string) (at dated.Place, rec store.Record, err error) {
	if err := checkName(name); err != nil {
		return at, rec, err
	}
	for _, t := range append([]string{""}, template.Of(name)...) {
		at = dated.Place{Name: name, Template: t}
		if rec, err = st.Get(ctx, at.Definition()); err != nil || rec.Version != "" {
			return at, rec, err
		}
	}
	return at, rec, &MissingError{Series: name}
}

// aboveAll is the definition of a new template of which every name begins above a text, by Options.After.
func (o *Options) aboveAll(ctx context.Context, st store.Store, name string, def dated.Definition, now time.Time, p store.Durability) (dated.Definition, error) {
	r, err := o.rules(name)
	if err != nil {
		return def, err
	}
	to, err := r.pattern.Parse(o.After)
	if err != nil {
		return def, err
	}
	if !r.pattern.HasDate() && to.Count >= r.Max {
		return def, &EndError{Series: name, Pattern: o.Pattern, Max: r.Max}
	}
	if now.IsZero() {
		now = time.Now()
	}
	recovery, err := recoveryOf(ctx, st)
	return def.Recovered(to.Count, max(r.Through(now), to.Period), recovery, p), err
}

// checkBelongs returns an error if a new series and one of the store could have one name: one is a
// template that the other belongs to. The counters of that name would begin again.
func checkBelongs(name string, all []Info) error {
	for _, in := range all {
		switch {
		case !template.Clash(name, in.Name):
		case template.Is(in.Name):
			return &OptionError{"series", fmt.Sprintf("series %s: the store has the template %s, whose names begin with %s too", name, in.Name, template.Prefix(in.Name)), nil}
		default:
			return &OptionError{"series", fmt.Sprintf("series %s: the store has a series %s, and the names of %s begin with %s too", name, in.Name, name, template.Prefix(name)), nil}
		}
	}
	return nil
}

// lastTexts returns the last text of each counter of a template.
func lastTexts(ctx context.Context, st store.Store, name string) ([]Number, error) {
	rec, err := st.Get(ctx, dated.Place{Name: name}.Definition())
	if err != nil {
		return nil, err
	}
	def, err := record.Read[dated.Definition](rec)
	if err != nil {
		return nil, err
	}
	counters, err := st.List(ctx, dated.CountersOf(name))
	if err != nil {
		return nil, err
	}
	var all []Number
	for _, c := range counters {
		one := Info{Pattern: def.Pattern}
		if err := one.add(&def, c); err != nil {
			return nil, err
		}
		all = append(all, one.Texts...)
	}
	return all, nil
}
