package document

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
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
	MayRepeat bool   // whoever created it accepted a store that can lose writes
	Store     string // the store that it was made in; empty where nobody has noted it

	MayEqual []string // series whose texts may equal this one's

	// Texts are the last text of the latest date up to today, and the last text of each later date,
	// by date. There are several where a clock was ahead: each date has a counter of its own, so a
	// store that takes over needs all of them.
	Texts []Number
}

// List returns the series of a store, by name. It reads every record.
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
		name, period, isCounter := strings.Cut(strings.TrimPrefix(rec.Key, dated.Keys), "/")
		if !isCounter {
			def, err := record.Read[dated.Definition](rec)
			if err != nil {
				return nil, err
			}
			def = change(name, def)
			index[name], defs = len(all), append(defs, def)
			all = append(all, Info{
				Name: name, Pattern: def.Pattern, Zone: def.Zone, MayRepeat: def.Lossy, Store: def.Store, MayEqual: def.MayEqual,
				Today: earliestToday(name, def, rec.Read),
			})
			continue
		}
		i, ok := index[name]
		if !ok {
			continue
		}
		c, err := dated.ReadCounter(rec)
		if err != nil {
			return nil, err
		}
		info := &all[i]
		info.Periods++
		if period == dated.Whole {
			period = ""
		}
		// By key, so the last stays.
		info.Period, info.Count = period, defs[i].RaisedTo(c, rec.Version != "", period).Count
		if p, err := ParsePattern(info.Pattern); err == nil && info.Count > 0 {
			info.counted(p.number(period, min(info.Count, p.max)))
		}
	}
	return all, nil
}

// counted takes the last text of a date that is later than those before.
func (i *Info) counted(last Number) {
	i.Text = last.Text
	if last.Period <= i.Today {
		i.Texts = nil
	}
	i.Texts = append(i.Texts, last)
}

// Widen gives a series another pattern or zone. Only the width of the counter and the zone
// may differ, or a text could repeat. Processes that have the series open go on with the old
// pattern until they open it again, and repeat nothing meanwhile.
//
// Errors: [*OptionError], the patterns differ in something else, which needs a new series, or the
// new one has no room above the last text of today or of a later date;
// [*MissingError]; [*store.OtherStoreError], this store is a copy.
func Widen(ctx context.Context, st store.Store, name, pattern, zone string) (Info, error) {
	r, err := (&Options{Pattern: pattern, Zone: zone}).rules(name)
	if err == nil && pattern == "" {
		_, err = ParsePattern(pattern)
	}
	if err != nil {
		return Info{}, err
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	now, err := Show(ctx, st, name)
	if err != nil {
		return Info{}, withNames(ctx, st, err)
	}
	err = update(ctx, st, name, func(def dated.Definition) (dated.Definition, error) {
		old, err := ParsePattern(def.Pattern)
		if err != nil {
			return def, fmt.Errorf("document: series %q: %w", name, err)
		}
		for _, last := range now.Texts {
			if most := r.pattern.max; most < old.max && last.Count >= most && last.Period >= now.Today {
				return def, &OptionError{"pattern", fmt.Sprintf("series %q cannot go from %s to %s: it was granted texts up to %s, and the counter of %s ends at %d",
					name, def.Pattern, pattern, last.Text, pattern, most), nil}
			}
		}
		if what := old.differs(r.pattern); what != "" {
			return def, &OptionError{"pattern", fmt.Sprintf("series %q cannot go from %s to %s: only the width of the counter and the zone may change, "+
				"or a text could repeat; they differ in %s", name, def.Pattern, pattern, what), nil}
		}
		def.Pattern, def.Zone = pattern, zone
		return def, nil
	})
	if err != nil {
		return Info{}, err
	}
	return Show(ctx, st, name)
}

// Raise continues a counter above that of a text, which was given out by another system, or
// before the store lost something. Other dates count as before. Counts that a process has in
// hand are still given out. Raise never lowers anything, so numbers that are skipped by
// mistake are lost: ask a person before a long way.
//
// Errors: [*OptionError], the counter is above the text already; [*firn.SyntaxError], it is
// no text of this series; [*EndError], no number would be left, in a pattern without a date;
// [*MissingError]; [*store.OtherStoreError], this store is a copy.
func Raise(ctx context.Context, st store.Store, name, text string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	rec, err := st.Get(ctx, dated.Key(name))
	if err != nil {
		return Info{}, err
	}
	if rec.Version == "" {
		return Info{}, withNames(ctx, st, &MissingError{Series: name})
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
	if err := raiseCounter(ctx, st, name, def, p, to); err != nil {
		return Info{}, err
	}
	return Show(ctx, st, name)
}

// raiseCounter raises the counter of a text's date.
func raiseCounter(ctx context.Context, st store.Store, name string, def dated.Definition, p *Pattern, to Number) error {
	for {
		rec, err := st.Get(ctx, dated.KeyCounter(name, to.Period))
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
	_, err := record.Change(ctx, st, dated.Key(name), change)
	if errors.Is(err, record.ErrMissing) {
		return withNames(ctx, st, &MissingError{Series: name})
	}
	return err
}
