package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// An Info is a series as the store has it.
type Info struct {
	Name      string
	Pattern   string
	Zone      string // "" where the pattern has no date
	Period    string // last one by name that was counted in; "" where there are none
	Count     int64  // in it, with what a recovery leaves out; 0 before the first
	Text      string // of that count; "" before the first
	Today     string // today's date in the zone, by the store's clock; "" where the pattern has no date
	Periods   int    // counters there are
	MayRepeat bool   // its creator accepted a lossy store
	Store     string // the store that it was made in; empty where nobody has noted it
	Raised    bool   // a recovery of the store raised it, or it is a template that was created above a text

	MayEqual []string // series whose texts may equal this one's

	Template string // that the series is a name of; "" where it is none
	MaxNames int    // how many names a template may have; 0 where the series is none
	Names    int    // how many names a template has; [List] leaves it 0

	// Texts are the last text of the latest date up to today, and the last text of each later date,
	// by date. There are several where a clock was ahead: each date has a counter of its own, so a
	// store that takes over needs all of them.
	Texts []Number
}

// List returns the series of a store, by name. It reads every record of documents and templates, and
// none of the names of templates.
func List(ctx context.Context, st store.Store) ([]Info, error) {
	list, err := st.List(ctx, dated.Keys)
	if err != nil {
		return nil, err
	}
	return infos(list)
}

// infos are those of records by key.
func infos(list []store.Record) ([]Info, error) {
	return infosAs(list, func(_ string, def dated.Definition) dated.Definition { return def })
}

// infosAs are those of records by key, with each definition as change returns it.
func infosAs(list []store.Record, change func(name string, def dated.Definition) dated.Definition) ([]Info, error) {
	var all []Info
	var defs []dated.Definition
	index := map[string]int{}
	for _, rec := range list {
		if at, _, ok := dated.Split(rec.Key); ok {
			if i, ok := index[at.Name]; ok {
				if err := all[i].add(&defs[i], rec); err != nil {
					return nil, err
				}
			}
			continue
		}
		name := strings.TrimPrefix(rec.Key, dated.Keys)
		def, err := record.Read[dated.Definition](rec)
		if err != nil {
			return nil, err
		}
		def = change(name, def)
		index[name], defs = len(all), append(defs, def)
		all = append(all, newInfo(dated.Place{Name: name}, def, rec.Read))
	}
	return all, nil
}

// newInfo is what a definition says, which was read at an instant of the store's clock.
func newInfo(at dated.Place, def dated.Definition, read time.Time) Info {
	in := Info{
		Name: at.Name, Template: at.Template, Pattern: def.Pattern, Zone: def.Zone, MayRepeat: def.Lossy, Store: def.Store, Raised: len(def.Raised) > 0, MayEqual: def.MayEqual,
		Today: earliestToday(at.Name, def, read),
	}
	if template.Is(at.Name) {
		in.MaxNames = def.MostNames()
	}
	return in
}

// add adds a counter. They come by key, so the last stays.
func (i *Info) add(def *dated.Definition, rec store.Record) error {
	c, err := dated.ReadCounter(rec)
	if err != nil {
		return err
	}
	_, period, _ := dated.Split(rec.Key)
	i.Periods++
	i.Period, i.Count = period, def.RaisedTo(c, rec.Version != "", period).Count
	if p, err := ParsePattern(i.Pattern); err == nil && i.Count > 0 {
		i.counted(p.number(period, min(i.Count, p.max)))
	}
	return nil
}

// counted takes the last text of a date that is later than those before.
func (i *Info) counted(last Number) {
	i.Text = last.Text
	if last.Period <= i.Today {
		i.Texts = nil
	}
	i.Texts = append(i.Texts, last)
}

// Widen gives a series another pattern or zone, and a template another number of names. Of the options it
// reads Pattern, Zone and Names. Zero Names means as many as before, and a template needs no Pattern where
// Names is set. Only the width of the counter and the zone may differ, or a text could repeat. Processes that have the series open continue with the old
// pattern until they open it again, and repeat nothing meanwhile.
//
// Errors: [*OptionError], the patterns differ in something else, which needs a new series, or the
// new one has no room above the last text of today or of a later date;
// [*MissingError]; [*store.OtherStoreError], this store is a copy.
func Widen(ctx context.Context, st store.Store, name string, opts *Options) (Info, error) {
	var o Options
	if opts != nil {
		o = Options{Pattern: opts.Pattern, Zone: opts.Zone, Names: opts.Names}
	}
	r, err := o.rules(name)
	if err == nil && o.Pattern == "" && (o.Names == 0 || o.Zone != "") {
		_, err = ParsePattern(o.Pattern)
	}
	if err != nil {
		return Info{}, err
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	now, err := Show(ctx, st, name)
	if err == nil && now.Template != "" {
		err = &OptionError{"series", fmt.Sprintf("series %s: it is a name of the template %s, which has the pattern and the zone", name, now.Template), nil}
	}
	if err != nil {
		return Info{}, withNames(ctx, st, err)
	}
	if template.Is(name) {
		if now.Texts, err = lastTexts(ctx, st, name); err != nil {
			return Info{}, err
		}
	}
	err = update(ctx, st, name, func(def dated.Definition) (dated.Definition, error) {
		def.Names = cmp.Or(o.Names, def.Names)
		if o.Pattern == "" {
			return def, nil
		}
		if err := now.takes(def.Pattern, r.pattern); err != nil {
			return def, err
		}
		def.Pattern, def.Zone = o.Pattern, o.Zone
		return def, nil
	})
	if err != nil {
		return Info{}, err
	}
	return Show(ctx, st, name)
}

// takes returns an error if the series cannot have another pattern in place of its own.
func (i *Info) takes(is string, want *Pattern) error {
	old, err := ParsePattern(is)
	if err != nil {
		return fmt.Errorf("document: series %q: %w", i.Name, err)
	}
	for _, last := range i.Texts {
		if most := want.max; most < old.max && last.Count >= most && last.Period >= i.Today {
			return &OptionError{"pattern", fmt.Sprintf("series %q cannot go from %s to %s: it was granted texts up to %s, and the counter of %s ends at %d",
				i.Name, is, want, last.Text, want, most), nil}
		}
	}
	if what := old.differs(want); what != "" {
		return &OptionError{"pattern", fmt.Sprintf("series %q cannot go from %s to %s: only the width of the counter and the zone may change, "+
			"or a text could repeat; they differ in %s", i.Name, is, want, what), nil}
	}
	return nil
}

// Raise continues a counter above that of a text, which was given out by another system, or
// before the store lost something. Other dates count as before. Counts that a process has in
// hand are still given out. A name of a template that is new begins so. Raise never lowers anything, so numbers that are skipped by
// mistake are lost: ask a person before a long way.
//
// Errors: [*OptionError], the counter is above the text already; [*firn.SyntaxError], it is
// no text of this series; [*EndError], no number would be left, in a pattern without a date;
// [*MissingError]; [*store.OtherStoreError], this store is a copy.
func Raise(ctx context.Context, st store.Store, name, text string) (Info, error) {
	if template.Is(name) {
		return Info{}, &OptionError{"series", fmt.Sprintf("series %s: it is a template, and each of its names has a counter of its own: raise a name", name), nil}
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	at, rec, err := locate(ctx, st, name)
	if err != nil {
		return Info{}, withNames(ctx, st, err)
	}
	def, err := record.Read[dated.Definition](rec)
	if err != nil {
		return Info{}, err
	}
	p, err := ParsePattern(def.Pattern)
	if err != nil {
		return Info{}, err
	}
	to, err := p.Parse(text)
	if err != nil {
		return Info{}, err
	}
	if !p.HasDate() && to.Count >= p.Max() {
		return Info{}, &EndError{Series: name, Pattern: def.Pattern, Max: p.Max()}
	}
	if err := addName(ctx, st, at, &def); err != nil {
		return Info{}, err
	}
	if err := raiseCounter(ctx, st, at, def, p, to); err != nil {
		return Info{}, err
	}
	return Show(ctx, st, name)
}

// raiseCounter raises the counter of a text's date.
func raiseCounter(ctx context.Context, st store.Store, at dated.Place, def dated.Definition, p *Pattern, to Number) error {
	for {
		rec, err := st.Get(ctx, at.Counter(to.Period))
		if err != nil {
			return err
		}
		c, err := dated.ReadCounter(rec)
		if err != nil {
			return err
		}
		c = def.RaisedTo(c, rec.Version != "", to.Period)
		if c.Count >= to.Count {
			return &OptionError{"to", fmt.Sprintf("to %s: texts up to %s were granted already", to.Text, p.number(to.Period, min(c.Count, p.max)).Text), nil}
		}
		c = c.Counted(to.Count)
		_, err = record.Write(ctx, st, rec.Key, record.Encode(c), store.Condition{Version: rec.Version})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// update replaces the definition of a series.
func update(ctx context.Context, st store.Store, name string, change func(dated.Definition) (dated.Definition, error)) error {
	_, err := record.Change(ctx, st, dated.Place{Name: name}.Definition(), change)
	if errors.Is(err, record.ErrMissing) {
		return withNames(ctx, st, &MissingError{Series: name})
	}
	return err
}
