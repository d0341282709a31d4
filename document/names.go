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
// a record of its own, since to list them takes the longer the more there are. Processes that add names at the
// same moment may pass the limit together, and one that is killed between the two writes is not counted.
func addName(ctx context.Context, st store.Store, at dated.Place, def *dated.Definition) error {
	if at.Template == "" {
		return nil
	}
	rec, err := st.Get(ctx, at.Record())
	if err != nil || rec.Version != "" {
		return err
	}
	count, _, err := readCount(ctx, st, at.Template)
	if err != nil {
		return err
	}
	if count.Names >= def.MostNames() {
		return &FullError{at.Template, at.Name, def.MostNames()}
	}
	_, err = record.Create(ctx, st, at.Record(), record.Encode(dated.NameRecord{V: record.Format}))
	if errors.Is(err, store.ErrConflict) {
		return nil // another process was first, and counts it
	}
	if err != nil {
		return err
	}
	return countName(ctx, st, at.Template)
}

// readCount reads how many names a template has.
func readCount(ctx context.Context, st store.Store, template string) (n dated.NameRecord, v store.Version, err error) {
	rec, err := st.Get(ctx, dated.KeyCount(template))
	if err == nil && rec.Version != "" {
		n, err = record.Read[dated.NameRecord](rec)
	}
	return n, rec.Version, err
}

// countName counts one name more.
func countName(ctx context.Context, st store.Store, template string) error {
	for {
		n, version, err := readCount(ctx, st, template)
		if err != nil {
			return err
		}
		n.V, n.Names = record.Format, n.Names+1
		_, err = record.Write(ctx, st, dated.KeyCount(template), record.Encode(n), store.Condition{Version: version})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
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
