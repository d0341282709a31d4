package document

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// A Recovery is what [Recover] did to one series, or would do.
type Recovery struct {
	Series  string
	By      int64  // how many numbers each counter leaves out that the store may have set back
	Through string // last period of which that is true; "" where there are none
	Full    string // last period that then has no number left, of today's and later ones, of a template for any name; "" where all have some
	IsFull  bool   // there is such a period; it has no name in a series without a date
	Max     int64  // how many numbers the pattern has room for in a period
	Text    string // last text that may have been given out, of the latest period; "" for a template, or if there is none

	// Texts are the last texts that may have been given out today and in each later period that has
	// a counter, by period: the series continues above them. It is nil where no text was given out.
	Texts []Number

	today string
}

// Recover makes the series of a store safe after it lost something: a backup was restored, a
// replica that lagged was promoted, a file was lost, or a server that can lose writes was
// started again. Stop all processes that use the store first, and start them when Recover has
// returned. Texts that they give out in between may repeat, and so may those of a process that is
// only cut off from the store: it may have read up to 30 s before how far counters were raised.
//
// Each counter leaves out as many numbers as numbers says, or as each says of that series.
// That has to be more than any date can have lost; nobody but the operator knows how much
// that is, and texts that are printed or stored elsewhere tell. It is at least 1. It is true
// of every date up to the latest that has begun in any zone, by the store's clock: where that
// differs from this host's by more than 5 s, one of the two is wrong, and Recover changes nothing
// and returns an error. More than a pattern has room
// for leaves a date no number: [PlanRecovery] says so before. Recover accepts the store and
// its instance as they are now. It may be repeated, and has to be after an error: each time
// raises the counters again. A series that the store has lost altogether does not begin
// again by itself.
func Recover(ctx context.Context, st store.Store, numbers int64, each map[string]int64) ([]Recovery, error) {
	if err := checkNumbers(numbers, each); err != nil {
		return nil, err
	}
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	if err := record.CheckClock(ctx, st, record.KeyLost); err != nil {
		return nil, err
	}
	if err := record.MarkLost(ctx, st); err != nil {
		return nil, err
	}
	plan, err := PlanRecovery(ctx, st, numbers, each)
	if err != nil {
		return nil, err
	}
	recovery, err := recoveryOf(ctx, st)
	if err != nil {
		return nil, err
	}
	for i, r := range plan {
		err := update(ctx, st, r.Series, func(def dated.Definition) (dated.Definition, error) {
			return def.Recovered(r.By, r.Through, recovery, p), nil
		})
		if err != nil {
			return plan[:i], fmt.Errorf("document: series %q: %w", r.Series, err)
		}
	}
	return plan, nil
}

// PlanRecovery returns what [Recover] would do. It writes nothing.
func PlanRecovery(ctx context.Context, st store.Store, numbers int64, each map[string]int64) ([]Recovery, error) {
	if err := checkNumbers(numbers, each); err != nil {
		return nil, err
	}
	list, err := st.List(ctx, dated.Keys)
	if err != nil {
		return nil, err
	}
	ofNames, err := st.List(ctx, dated.NameKeys)
	if err != nil {
		return nil, err
	}
	counters := byDate(append(slices.Clone(list), ofNames...))
	var plan []Recovery
	for _, rec := range list {
		name := strings.TrimPrefix(rec.Key, dated.Keys)
		if strings.Contains(name, "/") {
			continue
		}
		r := Recovery{Series: name, By: numbers}
		if own, ok := each[name]; ok {
			r.By = own
		}
		if err := r.plan(rec, counters); err != nil {
			return nil, fmt.Errorf("document: series %q: %w", name, err)
		}
		plan = append(plan, r)
	}
	return plan, inform(plan, list)
}

// byDate are the counters among records, by the name of their definition and their period.
func byDate(list []store.Record) map[[2]string][]store.Record {
	all := map[[2]string][]store.Record{}
	for _, rec := range list {
		if at, period, ok := dated.Split(rec.Key); ok {
			key := [2]string{at.Defined(), period}
			all[key] = append(all[key], rec)
		}
	}
	return all
}

// inform adds to each recovery the last texts of its series. A template has too many, one for each name.
func inform(plan []Recovery, list []store.Record) error {
	of := map[string]Recovery{}
	for _, r := range plan {
		of[r.Series] = r
	}
	list = withToday(plan, list)
	all, err := infosAs(list, func(name string, def dated.Definition) dated.Definition {
		return def.Recovered(of[name].By, of[name].Through, planned, store.Durability{Identity: def.Store})
	})
	for i := range min(len(all), len(plan)) { // both are by name
		plan[i].Text, plan[i].Texts = all[i].Text, all[i].Texts
	}
	return err
}

// withToday adds to records by key the counter of today of each series that counted before and has
// none: the store may have lost it, and a recovery raises it from 0.
func withToday(plan []Recovery, list []store.Record) []store.Record {
	there, counted := map[string]bool{}, map[string]bool{}
	for _, rec := range list {
		there[rec.Key] = true
		name, _, isCounter := strings.Cut(strings.TrimPrefix(rec.Key, dated.Keys), "/")
		counted[name] = counted[name] || isCounter
	}
	all := slices.Clone(list)
	for _, r := range plan {
		if key := (dated.Place{Name: r.Series}).Counter(r.today); counted[r.Series] && !there[key] {
			all = append(all, store.Record{Key: key})
		}
	}
	slices.SortFunc(all, func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) })
	return all
}

func checkNumbers(numbers int64, each map[string]int64) error {
	least, most := numbers, numbers
	for _, own := range each {
		least, most = min(least, own), max(most, own)
	}
	if least < 1 || most >= dated.MaxRaise {
		return &OptionError{"numbers", fmt.Sprintf("numbers %d to %d: they are at least 1, and below %d, which no counter could hold", least, most, int64(dated.MaxRaise)), nil}
	}
	return nil
}

// plan fills in what becomes of a series, by its record and its counters. Of a template a name may have been
// lost, whose counter is raised from 0.
func (r *Recovery) plan(rec store.Record, counters map[[2]string][]store.Record) error {
	def, err := record.Read[dated.Definition](rec)
	if err != nil {
		return err
	}
	rules, err := (&Options{Pattern: def.Pattern, Zone: def.Zone}).rules(r.Series)
	if err != nil {
		return err
	}
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	r.today, r.Through, r.Max = rules.Period(now), rules.Through(now), rules.Max
	def = def.Recovered(r.By, r.Through, planned, store.Durability{})
	// The step is less than any period, so none is passed over, and no zone is further behind
	// the first than 26 hours.
	for ahead := time.Duration(0); ahead <= 36*time.Hour; ahead += rules.Shortest() {
		period := rules.Period(now.Add(ahead))
		if period > r.Through {
			break
		}
		of := counters[[2]string{r.Series, period}]
		if len(of) == 0 || template.Is(r.Series) {
			of = append(slices.Clip(of), store.Record{})
		}
		for _, rec := range of {
			c, err := dated.ReadCounter(rec)
			if err != nil {
				return err
			}
			if def.RaisedTo(c, rec.Version != "", period).Count >= r.Max {
				r.Full, r.IsFull = period, true
			}
		}
	}
	return nil
}

// planned is a recovery that is not made yet: its mark is above all.
var planned = dated.Recovery{Above: 1 << 62}

// recoveryOf is a recovery of all that the store has now.
func recoveryOf(ctx context.Context, st store.Store) (dated.Recovery, error) {
	r := dated.Recovery{Now: time.Now(), Random: rand.Uint64()}
	list, err := st.List(ctx, dated.Keys)
	if err != nil {
		return r, err
	}
	ofNames, err := st.List(ctx, dated.NameKeys)
	for _, rec := range append(list, ofNames...) {
		if !rec.Read.IsZero() {
			r.Now = rec.Read
		}
		if _, _, ok := dated.Split(rec.Key); !ok {
			continue
		}
		c, err := dated.ReadCounter(rec)
		if err != nil {
			return r, err
		}
		r.Above = max(r.Above, c.Raised)
	}
	return r, err
}
