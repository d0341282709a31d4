package document

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// An Info is a series as the store has it.
type Info struct {
	Name    string
	Pattern string
	Zone    string // "" where the pattern has no date
	Period  string // last one by name that was counted in; "" where there are none
	Count   int64  // in it; 0 before the first
	Text    string // of that count; "" before the first
	Periods int    // counters there are
	Lossy   bool   // it goes on on a store that can forget
	Store   string // the store that it was made in; empty where nobody has noted it
}

// List returns the series of a store, by name. It reads every record.
func List(ctx context.Context, st store.Store) ([]Info, error) {
	list, err := st.List(ctx, keyAll)
	if err != nil {
		return nil, err
	}
	return infos(list)
}

// infos are those of records by key.
func infos(list []store.Record) ([]Info, error) {
	var all []Info
	index := map[string]int{}
	for _, rec := range list {
		name, period, isCounter := strings.Cut(strings.TrimPrefix(rec.Key, keyAll), "/")
		if !isCounter {
			def, err := record.Read[definition](rec)
			if err != nil {
				return nil, err
			}
			index[name] = len(all)
			all = append(all, Info{Name: name, Pattern: def.Pattern, Zone: def.Zone, Lossy: def.Instance != "", Store: def.Store})
			continue
		}
		i, ok := index[name]
		if !ok {
			continue
		}
		c, err := readCounter(rec)
		if err != nil {
			return nil, err
		}
		info := &all[i]
		info.Periods++
		if period == whole {
			period = ""
		}
		info.Period, info.Count = period, c.Count // by key, so the last stays
		if p, err := ParsePattern(info.Pattern); err == nil && c.Count > 0 {
			info.Text = string(p.AppendText(nil, period, c.Count))
		}
	}
	return all, nil
}

// CheckRecord reports whether a record is of this package, and what keeps this
// version from reading it.
func CheckRecord(rec store.Record) (ours bool, err error) {
	rest, ours := strings.CutPrefix(rec.Key, keyAll)
	switch {
	case rec.Key == keyRestored:
		return true, nil
	case !ours:
		return false, nil
	case strings.Contains(rest, "/"):
		_, err = readCounter(rec)
		return true, err
	}
	def, err := record.Read[definition](rec)
	if err == nil {
		_, err = ParsePattern(def.Pattern)
	}
	return true, err
}

// Widen gives a series another pattern or zone. Only the width of the counter
// and the zone may differ, or a text could repeat; everything else is a
// [*ChangeError], and a new series; a store that is a copy is a [*store.OtherStoreError]. Processes that have the series open go on as
// they are until they open it again, and repeat nothing meanwhile.
func Widen(ctx context.Context, st store.Store, name, pattern, zone string) error {
	r, err := (&Options{Zone: zone}).rules(name, pattern)
	if err != nil {
		return err
	}
	if err := CheckStore(ctx, st); err != nil {
		return err
	}
	return update(ctx, st, name, func(def definition) (definition, error) {
		old, err := ParsePattern(def.Pattern)
		if err != nil {
			return def, fmt.Errorf("document: series %q: %w", name, err)
		}
		if what := old.differs(r.pattern); what != "" {
			return def, &ChangeError{name, def.Pattern, pattern, what}
		}
		def.Pattern, def.Zone = pattern, zone
		return def, nil
	})
}

// Raise has a counter go on above that of a text, which was given out: by another
// system, or before the store forgot. It never goes back. Counts that a process
// has in hand, with Step or after calls that gave up waiting, are given out yet.
// It reports whether the counter was below. What is skipped by mistake is lost: ask
// before a long way. The last text of a pattern without a date is refused with an
// [*EndError]: none would be left; and a store that is a copy with a
// [*store.OtherStoreError].
func Raise(ctx context.Context, st store.Store, name, text string) (raised bool, err error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	if err := CheckStore(ctx, st); err != nil {
		return false, err
	}
	rec, err := st.Get(ctx, keySeries(name))
	if err != nil {
		return false, err
	}
	if rec.Version == "" {
		return false, withNames(ctx, st, &MissingError{Series: name})
	}
	def, err := record.Read[definition](rec)
	if err != nil {
		return false, err
	}
	p, err := ParsePattern(def.Pattern)
	if err != nil {
		return false, err
	}
	to, err := p.Parse(text)
	if err != nil {
		return false, err
	}
	if !p.HasDate() && to.Count >= p.Max() {
		return false, &EndError{Series: name, Pattern: def.Pattern, Max: p.Max()}
	}
	for {
		rec, err := st.Get(ctx, keyCounter(name, to.Period))
		if err != nil {
			return false, err
		}
		c, err := readCounter(rec)
		if err != nil {
			return false, err
		}
		c = def.raisedTo(c, rec.Version != "", to.Period)
		if c.Count >= to.Count {
			return false, nil
		}
		c = c.counted(to.Count)
		_, err = st.Put(ctx, rec.Key, record.Encode(c), store.Condition{Version: rec.Version})
		if !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
}

// update replaces the definition of a series.
func update(ctx context.Context, st store.Store, name string, change func(definition) (definition, error)) error {
	for {
		rec, err := st.Get(ctx, keySeries(name))
		if err != nil {
			return err
		}
		if rec.Version == "" {
			return withNames(ctx, st, &MissingError{Series: name})
		}
		def, err := record.Read[definition](rec)
		if err != nil {
			return err
		}
		if def, err = change(def); err != nil {
			return err
		}
		_, err = st.Put(ctx, rec.Key, record.Encode(def), store.Condition{Version: rec.Version})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// A Recovery is what [Recover] did to one series, or would do.
type Recovery struct {
	Series  string
	By      int64  // each counter that it may have set back goes on so much higher
	Through string // last period of which that is true; "" where there are none
	Full    string // last period that then has no number left, of today's and later ones; "" where all have some
	IsFull  bool   // there is such a period; it has no name in a series without a date
	Max     int64  // how many numbers the pattern has room for in a period
}

// RaiseBy is what [Recover] raises counters by where nobody says.
const RaiseBy = 1000

// MaxRaise is above what counters can be raised by: no pattern has room for it.
const MaxRaise = 1e18

// Recover makes the series of a store usable again that has forgotten: after a
// backup was restored, a replica that lagged was promoted, or a server that can
// forget was started again. Stop every process that uses them first: what they
// give out meanwhile may repeat.
//
// Each counter of a period up to the latest that has begun in any zone goes on by
// so much higher, or by what each says of its series; it has to be more than any period can have lost, and nobody but the operator knows
// how much that is: texts that are printed or stored elsewhere tell. 0 is
// [RaiseBy]. More than a pattern has room for leaves a period no number: [PlanRecovery] tells before. The store and the instance that answer now are accepted. It may be repeated, and
// is to be after an error; every time raises the counters. A series that the store
// has forgotten altogether does not begin again by itself.
func Recover(ctx context.Context, st store.Store, by int64, each map[string]int64) ([]Recovery, error) {
	if err := checkRaise(by); err != nil {
		return nil, err
	}
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := st.Get(ctx, keyRestored)
	if err != nil {
		return nil, err
	}
	if rec.Version == "" {
		_, err := st.Put(ctx, keyRestored, []byte(`{"v":1}`), store.Condition{})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
	}
	plan, err := PlanRecovery(ctx, st, by, each)
	if err != nil {
		return nil, err
	}
	for i, r := range plan {
		err := update(ctx, st, r.Series, func(def definition) (definition, error) {
			return def.restored(r, p), nil
		})
		if err != nil {
			return plan[:i], fmt.Errorf("document: series %q: %w", r.Series, err)
		}
	}
	return plan, nil
}

// PlanRecovery returns what [Recover] would do. It writes nothing.
func PlanRecovery(ctx context.Context, st store.Store, by int64, each map[string]int64) ([]Recovery, error) {
	list, err := st.List(ctx, keyAll)
	if err != nil {
		return nil, err
	}
	counters := map[string]store.Record{}
	for _, rec := range list {
		counters[rec.Key] = rec
	}
	var plan []Recovery
	for _, rec := range list {
		name := strings.TrimPrefix(rec.Key, keyAll)
		if strings.Contains(name, "/") {
			continue
		}
		r := Recovery{Series: name, By: by}
		if own, ok := each[name]; ok {
			r.By = own
		}
		if err := checkRaise(r.By); err != nil {
			return nil, err
		}
		if r.By == 0 {
			r.By = RaiseBy
		}
		if err := r.plan(rec, counters); err != nil {
			return nil, fmt.Errorf("document: series %q: %w", name, err)
		}
		plan = append(plan, r)
	}
	return plan, nil
}

func checkRaise(by int64) error {
	if by < 0 || by >= MaxRaise {
		return fmt.Errorf("document: counters cannot be raised by %d", by)
	}
	return nil
}

// plan fills in what becomes of a series, by its record and its counters.
func (r *Recovery) plan(rec store.Record, counters map[string]store.Record) error {
	def, err := record.Read[definition](rec)
	if err != nil {
		return err
	}
	rules, err := (&Options{Zone: def.Zone}).rules(r.Series, def.Pattern)
	if err != nil {
		return err
	}
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	r.Through, r.Max = rules.through(now), rules.pattern.max
	def = def.restored(*r, store.Durability{})
	// Half a day is less than any period, so none is passed over, and no zone is further behind
	// the first than 26 hours.
	for ahead := time.Duration(0); ahead <= 36*time.Hour; ahead += 12 * time.Hour {
		period := rules.period(now.Add(ahead))
		if period > r.Through {
			break
		}
		rec := counters[keyCounter(r.Series, period)]
		c, err := readCounter(rec)
		if err != nil {
			return err
		}
		if def.raisedTo(c, rec.Version != "", period).Count >= r.Max {
			r.Full, r.IsFull = period, true
		}
	}
	return nil
}
