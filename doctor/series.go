package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/copied"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// This file checks the series of firn.yaml, and how the counters of a store go together.

// forms checks whether the public forms of firn.yaml have their keys.
func (e *exam) forms() {
	if e.set.File == nil {
		return
	}
	for i := range e.set.File.Series {
		one := &e.set.File.Series[i]
		if one.Public == nil {
			continue
		}
		form, err := e.set.WithKeys(one.Public)
		if err == nil && form.Values["keys"] == "" && one.Answers.Text != "public" {
			continue // only who asks for the form needs the keys
		}
		if f := e.set.File.KeysMissing(one); f != nil {
			err = f
		}
		if err == nil {
			_, err = form.Open(nil)
		}
		if err != nil {
			e.fails("series "+one.Name.Text+", public", err)
		}
	}
}

// counting returns the series of firn.yaml that count, those over several stores or the others,
// and reports those that cannot be served.
func (e *exam) counting(across bool) (all []*config.Series) {
	if e.set.File == nil {
		return nil
	}
	for i := range e.set.File.Series {
		one := &e.set.File.Series[i]
		if one.Kind.Text == config.Flake || one.Across() != across {
			continue
		}
		if s, err := e.set.Served(one); err != nil {
			e.fails("series "+one.Name.Text, err)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// spread checks each store of each sequence of firn.yaml that has several. They are not the store
// of --store.
func (e *exam) spread(ctx context.Context) {
	for _, s := range e.counting(true) {
		for _, url := range s.URLs {
			check := fmt.Sprintf("series %s, %s", s.Name, fromurl.Redact(whichstore.Text(url)))
			if err := partIn(ctx, s, url); err != nil {
				f := failure(check, err)
				f.Series = s
				e.report(f)
			} else {
				e.say(OK, check, "", "the store has this part of the sequence")
			}
		}
	}
}

// onlySpread reports whether the settings name no store and no pool, and all series are sequences over several
// stores: nothing would be in the default file.
func (e *exam) onlySpread() bool {
	file := e.set.File
	if file == nil || len(file.Series) == 0 || len(file.Pools) > 0 || e.set.StoreURL().Text != "" {
		return false
	}
	if _, said := e.set.Said("pool"); said {
		return false
	}
	return !slices.ContainsFunc(file.Series, func(one config.Written) bool { return !one.Across() })
}

// partIn returns what is wrong with one of the stores of a sequence. It makes no file.
func partIn(ctx context.Context, s *config.Series, url string) error {
	if path, ok := whichstore.File(url); ok && !remedy.IsFile(path) {
		if f, err := sqlite.Inspect(path); err == nil && f.Sidecar == nil {
			return &sequence.MissingError{Name: s.Name}
		}
	}
	st, err := open.Store(ctx, url, nil)
	if err != nil {
		return whichstore.At(s, url, err)
	}
	defer st.Close()
	err = errors.Join(copied.CheckSequences(ctx, st), countername.CheckCounter(ctx, st, s, store.Durability{}))
	if err == nil {
		err = standing(ctx, st, s)
	}
	return whichstore.At(s, url, err)
}

// missing looks for the counters of firn.yaml that the store does not have. Those of
// sequences over several stores are elsewhere.
func (e *exam) missing(ctx context.Context, st store.Store, durability store.Durability) {
	e.accepts = map[string]bool{}
	for _, s := range e.counting(false) {
		e.accepts[s.Name] = s.Options.Sequence.MayRepeat
		err := countername.CheckCounter(ctx, st, s, durability)
		if err == nil && s.Kind == config.Document && !durability.Durable && !s.Options.Document.MayRepeat {
			err = &document.LossyError{Series: s.Name, Why: durability.Why}
		}
		if err != nil {
			f := failure("series "+s.Name, err)
			f.Series = s
			e.report(f)
		} else if s.Kind == config.Document {
			e.names(ctx, st, s)
		}
	}
}

// names warns where firn.yaml and the store differ in how many names a template may have: what the store
// says counts.
func (e *exam) names(ctx context.Context, st store.Store, s *config.Series) {
	wants := s.Options.Document.Names
	if wants == 0 {
		return
	}
	if info, err := document.Show(ctx, st, s.Name); err == nil && info.MaxNames != wants {
		e.say(Warning, "series "+s.Name, fmt.Sprintf("firn series set %s --names %d, or names: %d in firn.yaml", phrase.ShellWord(s.Name), wants, info.MaxNames),
			"firn.yaml says names: %d, and the store lets it have %d, which counts", wants, info.MaxNames)
	}
}

// places checks whether the store's counters were made in it. Its pools are checked one by
// one, and records that cannot be read are reported by records.
func (e *exam) places(ctx context.Context, st store.Store) {
	for _, check := range []func(context.Context, store.Store) error{copied.CheckSequences, copied.CheckDocuments} {
		if err := check(ctx, st); err != nil && !errors.As(err, new(*store.FormatError)) {
			e.fails("counters, store", err)
		}
	}
}

// twins says which documents of the store can give out equal texts.
func (e *exam) twins(ctx context.Context, st store.Store) {
	all, err := document.List(ctx, st)
	if err != nil {
		return // what cannot be read is said elsewhere
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			p, err := document.ParsePattern(a.Pattern)
			q, err2 := document.ParsePattern(b.Pattern)
			if err != nil || err2 != nil || a.MaxNames+b.MaxNames > 0 || !p.Overlaps(q) { // of templates: see document.CheckNew
				continue
			}
			check := fmt.Sprintf("documents %s and %s", a.Name, b.Name)
			if slices.Contains(a.MayEqual, b.Name) || slices.Contains(b.MayEqual, a.Name) {
				e.say(OK, check, "", "their texts may be equal, as --may-repeat says: they must never meet in one table, queue or cache")
				continue
			}
			e.say(Warning, check, "use one of them only, and for the others a new document with another pattern; to see them: firn series ls", "their texts may be equal")
		}
	}
}
