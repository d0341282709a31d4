package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A calendar is how the texts of a schedule are made, and a midnight in their zone.
type calendar struct {
	text, zone string
	form       string // the units of its date; "": it has none
	midnight   time.Time
	pattern    *document.Pattern
	rules      dated.Rules
}

// calendars are such as zones have them: with daylight saving that begins at 2:00 or at midnight, and
// one in which a day is missing. In those of noon it is midnight when it is noon in UTC. In those of hours
// the midnight is an instant at which an hour is left out, or comes again, or one of before does.
var calendars = sync.OnceValue(func() []calendar {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := []calendar{
		{text: "D-{yyyyMMdd}-{6}", form: "yyyyMMdd", zone: "Etc/GMT+12", midnight: noon},
		{text: "D-{yyyyMM}-{6}", form: "yyyyMM", zone: "Etc/GMT+12", midnight: noon},
		{text: "T{1+}", midnight: noon},
		{text: "{yyDDD}{6}", form: "yyDDD", zone: "America/Sao_Paulo", midnight: time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC)},
		{text: "{yyyyMMdd}/{1+}{luhn}", form: "yyyyMMdd", zone: "Africa/Cairo", midnight: time.Date(2026, 4, 23, 22, 0, 0, 0, time.UTC)},
		{text: "D{yyyyMMdd}{2}", form: "yyyyMMdd", zone: "Pacific/Apia", midnight: time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)},
		{text: "D-{yyyyMMdd}-{6}", form: "yyyyMMdd", zone: "America/New_York", midnight: time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC)},
		{text: "{yyMMdd}{HH}{4}", form: "yyMMddHH", zone: "America/New_York", midnight: time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)},
		{text: "{yyyyMMddHH}{1+}", form: "yyyyMMddHH", zone: "America/New_York", midnight: time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)},
		{text: "H{yyyy-MM-dd}T{HH}-{4+}", form: "yyyyMMddHH", zone: "Australia/Lord_Howe", midnight: time.Date(2026, 4, 4, 15, 30, 0, 0, time.UTC)},
		{text: "{yyDDD}{HH}{3}", form: "yyDDDHH", zone: "Antarctica/Troll", midnight: time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
		{text: "{yyyy}-{4}", form: "yyyy", zone: "UTC", midnight: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, // no text has that year
	}
	for i := range all {
		c := &all[i]
		c.pattern = must(document.ParsePattern(c.text))
		c.rules = dated.Rules{Name: "world", Max: c.pattern.Max(), Zone: must(time.LoadLocation(c.zone))}
		c.rules.Date = dated.FormNamed(c.form)
	}
	return all
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keySeries is the definition of the series that every clerk of a world has.
var keySeries = dated.Key("world")

// documenting makes it a schedule of a series of documents alone, around a midnight.
func (s *setup) documenting(rng *rand.Rand) {
	s.counting(rng)
	s.series, s.documents, s.lives = false, true, rng.IntN(12) == 0
	last := len(calendars()) - 1
	if s.kind.lossy() || s.faults.restore || s.faults.remove { // a recovery of the year 10000 raises nothing
		last--
	}
	s.calendar, s.cache = rng.IntN(last+1), pick[int64](rng, 1, 1, 3, 10)
	if s.most = math.MaxInt64; rng.IntN(8) == 0 {
		s.most = 60
	}
	f := &s.faults
	f.dates = s.kind == clocked && rng.IntN(2) == 0
	f.undefine = !s.kind.lossy() && !f.restore && !f.remove && !f.twins && rng.IntN(4) == 0
	if rng.IntN(10) == 0 || f.undefine && rng.IntN(2) == 0 { // definitions are read again
		s.lasts, s.think, s.every = 90*time.Second, 300*time.Millisecond, 2*time.Second
	}
	s.begins = s.kind == embedded && !f.restore && !f.remove && !f.undefine && rng.IntN(2) == 0
	if rng.IntN(8) == 0 { // all goes well
		s.faults = faults{closes: rng.IntN(2) == 0, dates: s.kind == clocked && rng.IntN(3) == 0}
	}
}

// paper is the calendar of the schedule.
func (w *world) paper() *calendar { return &calendars()[w.calendar] }

// definition is one that was read.
func definition(rec store.Record, err error) (dated.Definition, error) {
	if err != nil {
		return dated.Definition{}, err
	}
	return record.Read[dated.Definition](rec)
}

// newSeries writes the definition that the schedule begins with.
func (w *world) newSeries(s *memory) {
	def := dated.Definition{V: record.Format, ID: "series", Pattern: w.paper().text, Zone: w.paper().zone, Store: s.identity}
	if w.chance(0.3) && !w.faults.twins { // else nothing tells a copy: a limit
		def.Store = ""
	}
	if w.chance(0.3) { // by a firn that wrote no marks
		def.Raised = []dated.Raise{{By: 0}}
	}
	if w.kind.lossy() {
		def.Instance = s.promise(nil).Instance
	}
	s.write(keySeries, record.Encode(def), w.newVersion())
}

// renamedSeries gives a definition an id that a seed says, and marks whose random bits it says.
func (w *world) renamedSeries(value []byte) []byte {
	def, err := record.Read[dated.Definition](store.Record{Key: keySeries, Value: value})
	if err != nil {
		return value
	}
	if !strings.HasPrefix(def.ID, "series") {
		def.ID = w.renamedID(def.ID)
	}
	for i := range def.Raised {
		if m := &def.Raised[i].Mark; *m > 0 && !w.marks[*m] {
			*m = *m>>30<<30 | int64(w.rng.Uint32()>>2) // see dated.Recovery
			w.marks[*m] = true
		}
	}
	return record.Encode(def)
}

// recoverSeries is what an operator does to documents after the store has lost something: each counter
// leaves out as many numbers as any has lost.
func (w *world) recoverSeries(ctx context.Context, s store.Store) error {
	by := max(w.check.papers.lost(w.store), 1)
	if w.wrong.belittles {
		by = 1
	}
	_, err := document.Recover(ctx, steady{s, w, w.store.instance}, by, nil)
	return err
}

// steady is a store of which an operator knows how much it lost: that the instance lost which answered
// then. Where it forgets again meanwhile, the operator begins anew.
type steady struct {
	store.Store
	w        *world
	instance int
}

func (s steady) Durability(ctx context.Context) (store.Durability, error) {
	p, err := s.Store.Durability(ctx)
	if s.w.store.instance != s.instance {
		return p, errStopped
	}
	return p, err
}

// mendLater lets an operator recover documents some time after, unless one is about to.
func (w *world) mendLater() {
	if !w.mending {
		w.mending = true
		w.after(w.upTo(2*time.Second), w.mendSeries)
	}
}

// mendSeries is an operator who recovers documents while processes are at work: on a store that can
// forget they have stopped by themselves.
func (w *world) mendSeries() {
	w.mending = false
	e := &errand{by: w.newOperator(), what: "operator recovers the series"}
	w.do(e, w.recoverSeries, func(err error) {
		if err != nil {
			w.mendLater()
		}
	})
}

// A step of the store's clock.
type step struct {
	at            time.Duration
	before, after time.Time
}

// setClock sets the store's clock.
func (s *memory) setClock(err time.Duration) {
	before := s.clock()
	s.err = err
	if !before.IsZero() {
		s.w.steps = append(s.w.steps, step{s.w.now, before, s.clock()})
	}
}

// date sets the store's clock over a midnight, and back some time after. By days it is set where
// nothing is lost: a recovery raises the counters of those dates that it can see.
func (w *world) date() {
	s := w.store
	if s.err.Abs() > w.rules.Skew || w.leases {
		return
	}
	right, by := s.err, w.upTo(4*time.Second)-2*time.Second
	f := &w.faults
	if !f.restore && !f.forget && !f.remove && w.chance(0.4) {
		by = time.Duration(w.rng.IntN(80)-40) * 12 * time.Hour
	}
	w.total.Faults[dateSet]++
	w.logf("the store's clock is set by %s", by)
	s.setClock(right + by)
	w.after(pick(w.rng, w.upTo(3*time.Second), w.upTo(300*time.Millisecond)), func() { s.setClock(right) })
}

// undefine removes the series' definition, or begins it anew. Some time after, an operator puts back
// one that is gone.
func (w *world) undefine() {
	s := w.store
	was := s.records[keySeries]
	if was == nil || was.whole != nil {
		return
	}
	w.total.Faults[undefined]++
	w.forgot = true
	if w.chance(0.5) {
		def := must(definition(s.get(keySeries), nil))
		def.ID = fmt.Sprint("series", w.total.Faults[undefined])
		w.logf("the series is begun anew")
		s.write(keySeries, record.Encode(def), w.newVersion())
		return
	}
	w.logf("the series' definition is removed")
	s.remove(keySeries)
	w.after(pick(w.rng, w.span(), w.upTo(40*time.Second)), func() {
		if s.records[keySeries] == nil {
			s.write(keySeries, was.value, w.newVersion())
		}
	})
}
