package document

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// Open opens a series. A series that is missing is created on an embedded store only, and
// only if that cannot have lost one; elsewhere it could be one that the store has lost, and
// [Create] says that there was none. A series that could repeat the texts of another one in
// the store is not created. With Options.Template that is said of the template, and a name that
// is new begins by itself. A template can be opened, and gives no texts itself: its names do. The series outlives ctx; Close hands back what is left.
//
// Errors to tell apart, besides the store's: [*OptionError]; [*MissingError]; [*FullError];
// [*DefinitionError], the series has another pattern or zone; [*OverlapError]; [*LossyError], the
// store is lossy and that is not accepted; [*InstanceError]; [*store.OtherStoreError], the
// store is a copy.
func Open(ctx context.Context, st store.Store, name string, opts *Options) (*Series, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if _, err := o.rules(name); err != nil {
		return nil, err
	}
	p, err := durabilityOf(ctx, st, name, o.MayRepeat)
	if err != nil {
		return nil, err
	}
	begin := p.NoticesLoss && o.Pattern != ""
	if begin {
		lost, err := record.MayHaveLost(ctx, st)
		if err != nil {
			return nil, err
		}
		begin = !lost
	}
	at := dated.Place{Name: name, Template: o.Template}
	def, begun, err := define(ctx, st, at.Defined(), &o, p, begin)
	if err != nil {
		return nil, err
	}
	if !begun {
		if err := o.meet(at.Defined(), def); err != nil {
			return nil, err
		}
	}
	o.Pattern, o.Zone = def.Pattern, def.Zone
	r, err := o.rules(name)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, st, at.Defined(), &def, p); err != nil {
		return nil, err
	}
	if def.Strange(p) {
		return nil, &InstanceError{name, p.Instance, def.Instance}
	}
	if err := addName(ctx, st, at, &def); err != nil {
		return nil, err
	}
	if !p.Durable {
		log := o.Logger
		if log == nil {
			log = slog.Default()
		}
		log.Warn("best effort: the store is lossy: it can lose a write that it acknowledged, and then texts repeat", "series", name, "why", p.Why)
	}
	s := &Series{store: st, rules: r, base: time.Now()}
	s.series = dated.NewSeries(r.Rules, def, p, s.clocks())
	s.life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// Create creates a series that never existed; the counter of each date begins with 1. A name that
// ends with a separator and a star, such as bill:*, is a template: see Options.Template. The
// caller states that no series of this name ever existed in this store, nor in one that this
// was copied or restored from: otherwise texts would be given out again, and nothing can
// notice that. The same is true of texts of another system: [Raise] says which were given
// out. So a program does not call Create when it starts; the step that creates the database
// does, once.
//
// Errors: [*ExistsError], the series is there; [*LostError], the store may
// have lost the series; [*firn.SyntaxError], Options.After is no text of it;
// [*AfterError], Options.After has a later date than today's; [*OverlapError], another series
// could give the same texts, which Options.MayEqual accepts; [*store.OtherStoreError], this store is a
// copy; [*LossyError]; [*OptionError]s; and the store's, after which the series may or may
// not be there: call Create again.
func Create(ctx context.Context, st store.Store, name string, opts *Options) (Info, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if _, err := o.rules(name); err != nil {
		return Info{}, err
	}
	if o.Template != "" {
		return Info{}, &OptionError{"template", fmt.Sprintf("template %s: create the template itself; its names begin by themselves", o.Template), nil}
	}
	if o.Pattern == "" {
		return Info{}, &OptionError{"pattern", "pattern: a new series needs one, such as INV-{yyyy}-{6}", nil}
	}
	p, err := durabilityOf(ctx, st, name, o.MayRepeat)
	if err != nil {
		return Info{}, err
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	if err := o.prepare(ctx, st, name); err != nil {
		return Info{}, err
	}
	def, begun, err := define(ctx, st, name, &o, p, true)
	if err != nil {
		return Info{}, err
	}
	if !begun {
		info, err := Show(ctx, st, name)
		if err == nil {
			err = &ExistsError{info}
		}
		return info, err
	}
	if def.Store == "" { // now that a record is there, the store can say where it is
		if p, err = st.Durability(ctx); err != nil {
			return Info{}, err
		}
	}
	if err := settle(ctx, st, name, &def, p); err != nil {
		return Info{}, err
	}
	return Show(ctx, st, name)
}

// prepare raises the counter of a series that is to be created above Options.After: before the
// series is there, so that no process draws in between. It returns a [*LostError] where the
// store may have lost the series and nobody says how far that was.
func (o *Options) prepare(ctx context.Context, st store.Store, name string) error {
	there, err := st.Get(ctx, dated.Place{Name: name}.Definition())
	if err != nil || there.Version != "" {
		return err
	}
	if o.After == "" {
		lost, err := record.MayHaveLost(ctx, st)
		if lost && !o.New {
			return &LostError{name}
		}
		return err
	}
	if err := CheckNew(ctx, st, name, o); err != nil {
		return err
	}
	p, err := ParsePattern(o.Pattern)
	if err != nil {
		return err
	}
	to, err := p.Parse(o.After)
	if err != nil || template.Is(name) { // begin writes it down
		return err
	}
	if !p.HasDate() && to.Count >= p.Max() {
		return &EndError{Series: name, Pattern: o.Pattern, Max: p.Max()}
	}
	today, err := o.today(name, there.Read)
	if err != nil {
		return err
	}
	if to.Period > today {
		return &AfterError{Series: name, After: o.After, Period: to.Period, Today: today}
	}
	err = raiseCounter(ctx, st, dated.Place{Name: name}, dated.Definition{}, p, to)
	var above *OptionError
	if errors.As(err, &above) && above.Option == "to" {
		return nil // an earlier call has raised it
	}
	return err
}

// durabilityOf is the store's durability, if a series may rest on it.
func durabilityOf(ctx context.Context, st store.Store, name string, accept bool) (store.Durability, error) {
	p, err := st.Durability(ctx)
	if err == nil && !p.Durable && !accept {
		err = &LossyError{name, p.Why}
	}
	return p, err
}

// define reads the definition of a series, or begins it. Of two who do at once
// one is first, and the other reads what that one wrote.
func define(ctx context.Context, st store.Store, name string, o *Options, p store.Durability, begin bool) (def dated.Definition, begun bool, err error) {
	key := dated.Place{Name: name}.Definition()
	rec, err := st.Get(ctx, key)
	if err != nil {
		return def, false, err
	}
	if rec.Version == "" && !begin {
		return def, false, withNames(ctx, st, &MissingError{Series: name})
	}
	if rec.Version == "" {
		if err := CheckNew(ctx, st, name, o); err != nil {
			return def, false, err
		}
		def := dated.Definition{
			V: record.Format, ID: record.NewID(), Pattern: o.Pattern, Zone: o.Zone,
			Lossy: o.MayRepeat, Store: p.Identity, MayEqual: o.MayEqual, Names: o.Names,
		}
		if !p.Durable {
			def.Instance = p.Instance
		}
		if template.Is(name) && o.After != "" {
			if def, err = o.aboveAll(ctx, st, name, def, rec.Read, p); err != nil {
				return def, false, err
			}
		}
		rec, err = record.Create(ctx, st, key, record.Encode(def))
		switch {
		case err == nil:
			return def, true, nil
		case !errors.Is(err, store.ErrConflict) || rec.Version == "":
			return def, false, fmt.Errorf("document: it is unknown whether series %q was created: %w", name, err)
		}
	}
	def, err = record.Read[dated.Definition](rec)
	return def, false, err
}

// Agrees returns a [*DefinitionError] if [Open] would refuse the options, because the series has
// another pattern or zone.
func (o *Options) Agrees(i Info) error {
	return o.meet(i.Name, dated.Definition{Pattern: i.Pattern, Zone: i.Zone})
}

// meet returns an error where the store has another pattern or zone than the options say.
func (o *Options) meet(name string, def dated.Definition) error {
	want := *o
	if want.Pattern == "" {
		want.Pattern = def.Pattern
		if want.Zone == "" {
			want.Zone = def.Zone
		}
	}
	if want.Pattern != def.Pattern || want.Zone != def.Zone {
		return &DefinitionError{name, def.Pattern, def.Zone, want.Pattern, want.Zone}
	}
	return nil
}
