package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// papers is what a checker knows of documents.
type papers struct {
	w       *world
	texts   map[page]giver // by whom each was given out
	periods map[page]*period
	spans   map[store.Version]*span
}

// A page is a period of a series, or a text.
type page struct{ series, text string }

// A giver is one run of a process.
type giver struct{ id, life int }

func (g giver) String() string { return fmt.Sprintf("p%d, run %d", g.id, g.life) }

// A period is the counter of one.
type period struct {
	issued  map[int64]bool
	top     int64   // highest that was issued
	highest int64   // that the store ever wrote down
	spans   []*span // in the order of their writes
}

// A span is the counts that a write has granted.
type span struct {
	above, to int64
	by        *clerk
	life      int
	at        time.Duration
	excused   bool // its outcome was unknown to the writer, or its date was over when it was written
}

func newPapers(w *world) papers {
	return papers{w, map[page]giver{}, map[page]*period{}, map[store.Version]*span{}}
}

func (c *papers) period(name page) *period {
	if c.periods[name] == nil {
		c.periods[name] = &period{issued: map[int64]bool{}}
	}
	return c.periods[name]
}

// periodOf is the period whose counter has a key.
func periodOf(key string) (page, bool) {
	at, period, ok := dated.Split(key)
	return page{at.Name, period}, ok
}

// read decodes the record of a counter.
func (r *stored) read(key string) (err error) {
	_, ok := periodOf(key)
	rec := store.Record{Key: key, Value: r.value, Version: r.version}
	if _, _, err = dated.Check(rec); err == nil && ok {
		r.dated, err = dated.ReadCounter(rec)
	}
	return err
}

// put: the store has carried out a write of a counter.
func (c *papers) put(by *process, key string, old, now *stored) {
	name, ok := periodOf(key)
	if !ok {
		return
	}
	p, above := c.period(name), int64(0)
	if old != nil {
		above = old.dated.Count
	}
	p.highest = max(p.highest, now.dated.Count)
	if by == nil || now.dated.Count <= above {
		return
	}
	s := c.span(now.version)
	s.above, s.to, s.at = above, now.dated.Count, c.w.now
	p.spans = append(p.spans, s)
}

// span is what a write has granted, or will.
func (c *papers) span(v store.Version) *span {
	if c.spans[v] == nil {
		c.spans[v] = &span{}
	}
	return c.spans[v]
}

// told: a clerk's driver has this answer.
func (c *papers) told(k *clerk, do dated.Action, a record.Answer) {
	name, counts := periodOf(do.Key)
	switch do.Op {
	case record.Put:
		unknown := a.Err != nil && !errors.Is(a.Err, store.ErrConflict) && a.Record.Version != ""
		if over := !a.Record.Written.IsZero() && c.w.paper().rules.Period(a.Record.Written) != name.text; unknown || a.Err == nil && over {
			c.span(a.Record.Version).excused = true
		}
	case record.Ask:
		if a.Err == nil && k.def.Store != "" && a.Durability.Identity != "" && k.def.Store != a.Durability.Identity {
			k.lost = "another store answers"
		}
	case record.Get:
		if counts || a.Err != nil {
			return
		}
		def, err := record.Read[dated.Definition](a.Record)
		switch {
		case a.Record.Version == "":
			k.lost = "the definition is gone"
		case err != nil:
		case def.ID != k.def.ID:
			k.lost = "the definition is another one"
		case def.Mark() < k.def.Mark():
			k.lost = "the definition is an older one"
		default:
			k.def = def
		}
	}
}

// answered: a call of a clerk has ended, with so many numbers or with an error.
func (c *papers) answered(k *clerk, n int64, got []dated.Grant, begun time.Duration, err error) {
	w := c.w
	if err != nil {
		c.refused(k, got, err)
		return
	}
	for _, g := range got {
		c.dated(k, g, begun)
		for count := g.Next; count <= g.Last; count++ {
			c.issued(k, g.Period, count)
			n--
		}
	}
	if n != 0 {
		w.fail(misstep, "p%d: a call got %v, which is %d too few", k.id, got, n)
	}
	if k.lost != "" {
		w.fail(unnoticed, "p%d: does not notice that %s", k.id, k.lost)
	}
	k.served = w.now
}

// refused: a call has got no numbers.
func (c *papers) refused(k *clerk, got []dated.Grant, err error) {
	w := c.w
	var no *dated.Refusal
	if errors.As(err, &no) && (no.Why == dated.Ended || no.Why == dated.WrongClock) {
		k.served = w.now // nobody is to blame
	}
	if len(got) > 0 {
		w.fail(misstep, "p%d: a call got %v, and the error %v", k.id, got, err)
	}
	gone := errors.As(err, new(*store.ForgotError))
	if gone && w.kind.lossy() { // the operator reads the error
		w.mendLater()
	}
	if gone && w.total.Faults[restored] == 0 && !w.forgot && w.copy == nil {
		w.fail(misstep, "p%d: forgotten, of a store that has forgotten nothing: %v", k.id, err)
	}
}

// issued: a text was given out.
func (c *papers) issued(k *clerk, name string, count int64) {
	w := c.w
	w.total.Texts++
	series := k.at.Name
	text := string(w.paper().pattern.AppendText(nil, name, count))
	by := giver{k.id, k.life}
	if w.trace != nil {
		w.logf("p%d gives out %s of %s", k.id, text, series)
	}
	if other, twice := c.texts[page{series, text}]; twice {
		w.fail(repeated, "text %s of %s: given out by %s and by %s", text, series, other, by)
	}
	c.texts[page{series, text}] = by
	p := c.period(page{series, name})
	p.issued[count], p.top = true, max(p.top, count)
	if count > p.highest {
		w.fail(outside, "p%d: text %s: granted were those up to %d", k.id, text, p.highest)
	}
	if w.kind.lossy() && !w.store.settled && !k.accepts {
		w.fail(misstep, "p%d: gives out text %s of a store that can forget, which it does not accept", k.id, text)
	}
}

// dated: the date of a text is one that the store's clock had during the call; or up to a second
// before, where it was in hand. Of processes' clocks that step, or are set right when faults are over,
// nothing is known.
func (c *papers) dated(k *clerk, g dated.Grant, begun time.Duration) {
	w := c.w
	if own := w.kind == embedded || !w.kind.clock(); w.faults.clocks && (own || w.faults.pauses) || w.calm && own {
		return
	}
	from := begun - 1200*time.Millisecond
	for _, s := range c.period(page{k.at.Name, g.Period}).spans {
		if s.above < g.Next && g.Last <= s.to && s.by == k && s.life == k.life && s.at >= begun {
			from = begun - time.Microsecond
		}
	}
	now := w.store.clock()
	if now.IsZero() {
		now = k.host.wall()
	}
	r := &w.paper().rules
	dates, then := []string{r.Period(now)}, now.Add(from-w.now)
	for _, s := range slices.Backward(w.steps) {
		if s.at < from {
			break
		}
		dates = append(dates, r.Period(s.before), r.Period(s.after))
		then = then.Add(s.before.Sub(s.after))
	}
	if dates = append(dates, r.Period(then)); !slices.Contains(dates, g.Period) {
		w.fail(stamp, "p%d: a text of %s, and from %s to %s it was %s", k.id, g.Period, begun, w.now, strings.Join(dates, ", "))
	}
}

// lost is how many counts of a period the store has forgotten, at most.
func (c *papers) lost(s *memory) (most int64) {
	for name, p := range c.periods {
		now := int64(0)
		at := dated.Place{Name: name.series}
		if c.w.template {
			at.Template = c.w.names()[0].Template
		}
		if r := s.records[at.Counter(name.text)].intact(); r != nil {
			now = max(r.dated.Count, r.dated.Reached) // what was handed back is not lost
		}
		most = max(most, p.highest-now)
	}
	return most
}

// end checks what can be seen when all is over.
func (c *papers) end() {
	for _, p := range c.w.procs {
		if p.clerk != nil && c.w.calm {
			c.writes(p.clerk)
		}
	}
	if f := &c.w.faults; !c.w.kind.lossy() && !f.restore && !f.remove && !f.twins && !f.drop && !c.w.forgot {
		c.gaps()
	}
}

// writes: a process that wants texts gets some, unless there are none.
func (c *papers) writes(k *clerk) {
	w := c.w
	late := 20*w.think + 2*w.patience + 30*time.Second
	if r := w.store.records[w.keySeries()]; r == nil || k.wish || k.strays || w.now-k.served < late || w.kind.lossy() && !k.accepts {
		return
	}
	why := error(nil)
	if k.series != nil {
		why = k.series.Err()
	}
	w.fail(starved, "p%d was given no texts since %s: %v", k.id, k.served, why)
}

// gaps: on a store that forgets nothing no count is missing below one that was issued; but where its
// write was of unknown outcome or late, its process has ended or has it in hand, or its date is over.
func (c *papers) gaps() {
	w, held := c.w, map[*clerk]int64{}
	for _, name := range slices.SortedFunc(maps.Keys(c.periods), func(a, b page) int {
		return cmp.Or(cmp.Compare(a.series, b.series), cmp.Compare(a.text, b.text))
	}) {
		p := c.periods[name]
		for n := int64(1); n < p.top; n++ {
			if p.issued[n] {
				continue
			}
			s := p.of(n)
			if s == nil {
				w.fail(misstep, "count %d of %s, period %q was granted to nobody", n, name.series, name.text)
				return
			}
			if s.excused || s.life != s.by.life || s.by.series == nil || len(s.by.tasks) > 0 || c.over(name.text) {
				continue
			}
			if held[s.by]++; held[s.by] > s.by.series.Reserved() {
				w.fail(misstep, "p%d: count %d of %s, period %q is missing: it was granted at %s, and is not in hand", s.by.id, n, name.series, name.text, s.at)
				return
			}
		}
	}
}

// of is the last span that has a count.
func (p *period) of(n int64) *span {
	for _, s := range slices.Backward(p.spans) {
		if s.above < n && n <= s.to {
			return s
		}
	}
	return nil
}

// over reports whether a date may have been over once.
func (c *papers) over(name string) bool {
	w := c.w
	if w.total.Faults[dateSet] > 0 || w.faults.clocks && w.store.clock().IsZero() || w.kind == embedded && w.faults.clocks {
		return true
	}
	now := w.store.clock()
	if now.IsZero() {
		now = w.hosts[0].wall()
	}
	return w.paper().rules.Period(now.Add(-time.Second)) != name || w.paper().rules.Period(now.Add(time.Second)) != name
}
