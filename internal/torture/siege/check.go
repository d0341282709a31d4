//go:build linux

package siege

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// An Issuer is a process, with what it wrote down.
type Issuer struct {
	Name    string
	Hands   [][]ledger.Run // in the order in which they were drawn
	Numbers []ledger.Run   // of the series, likewise
	Grants  []Grant        // nil: they are not known, and not checked
	Off     bool           // its clock was not right all the time
	Heirs   string         // issuers of the same name here go on with each other's grants
}

// issued is how many ids it has issued.
func (i *Issuer) issued() (n int64) {
	for _, runs := range i.Hands {
		for _, r := range runs {
			n += r.Count
		}
	}
	return n
}

// A Grant is a record of a worker that the store acknowledged to an issuer.
type Grant struct {
	Era     int // how often the store had been put back to an old copy
	Worker  int64
	Term    uint64
	Prior   firn.Tick // horizon of the record it replaced; negative: a heir extends what it was left
	Horizon firn.Tick

	asked, boot int64 // when its issuer asked for it, and heard of it
}

// A Report is what Check has looked at, and what is wrong with it.
type Report struct {
	IDs, Runs, Workers, Terms int64
	Numbers                   int64
	Repeated                  int64 // ids, and numbers, issued more than once
	Problems                  []string
}

func (r *Report) String() string {
	return fmt.Sprintf("%d ids in %d runs, of %d workers in %d terms, %d repeated", r.IDs, r.Runs, r.Workers, r.Terms, r.Repeated)
}

// maxProblems is how many problems are described. The first says it all.
const maxProblems = 20

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Check looks at all that was issued under a layout. No id may be there twice;
// each hand's ids of one worker must increase; and every id must lie inside a
// term that was granted to its issuer, above what any earlier term of the
// worker may have issued.
func Check(l firn.Layout, issuers []Issuer) *Report {
	r := &Report{}
	c := checker{report: r, issuers: issuers, read: newReader(l), terms: map[int64][]*holding{}}
	c.grants()
	for i := range issuers {
		for h, runs := range issuers[i].Hands {
			c.hand(i, h, runs)
		}
	}
	c.distinct(c.describe)
	c.numbers()
	r.Workers = int64(len(c.terms))
	for _, t := range c.terms {
		r.Terms += int64(len(t))
	}
	return r
}

// A reader takes ids apart.
type reader struct {
	layout firn.Layout
	time   firn.Field
	worker []firn.Field
}

func newReader(l firn.Layout) reader {
	d := reader{layout: l}
	for f := range l.Fields() {
		switch {
		case f.Name == "time":
			d.time = f
		case f.IsWorker():
			d.worker = append(d.worker, f)
		}
	}
	return d
}

func (d *reader) of(id firn.ID) (worker int64, tick firn.Tick) {
	for _, f := range d.worker {
		worker = worker<<f.Width | f.Of(id)
	}
	return worker, firn.Tick(d.time.Of(id))
}

// A holding is a term of a worker. Nothing outside (base, top] may be issued in it.
type holding struct {
	worker    int64
	era       int
	term      uint64
	issuer    int
	base, top firn.Tick
}

type checker struct {
	report  *Report
	issuers []Issuer
	read    reader
	terms   map[int64][]*holding // of each worker, by number
	all     []drawn
}

// A drawn is a run, and who drew it.
type drawn struct {
	first, last  firn.ID
	issuer, hand int32
}

// grants makes terms of what was granted.
func (c *checker) grants() {
	for i := range c.issuers {
		for _, g := range c.issuers[i].Grants {
			c.grant(i, g)
		}
	}
	for worker, terms := range c.terms {
		slices.SortFunc(terms, func(a, b *holding) int {
			return cmp.Or(cmp.Compare(a.era, b.era), cmp.Compare(a.term, b.term))
		})
		for i, t := range terms[1:] {
			before := terms[i]
			// What a term was granted and a later one finds is what counts: a
			// release lowers it, and its last words may not have been heard.
			before.top = min(before.top, t.base)
			if t.base < before.base {
				c.report.problem("worker %d: term %d begins above %d, term %d before it above %d", worker, t.term, t.base, before.term, before.base)
			}
		}
	}
}

func (c *checker) grant(issuer int, g Grant) {
	base := g.Prior
	if base < 0 {
		base = math.MaxInt64 // until who was granted it first is found
	}
	for _, t := range c.terms[g.Worker] {
		if t.term != g.Term || t.era != g.Era {
			continue
		}
		if t.issuer != issuer && !c.heirs(t.issuer, issuer) {
			c.report.problem("worker %d term %d: granted to both %s and %s", g.Worker, g.Term, c.issuers[t.issuer].Name, c.issuers[issuer].Name)
		}
		t.base, t.top = min(t.base, base), max(t.top, g.Horizon)
		return
	}
	c.terms[g.Worker] = append(c.terms[g.Worker], &holding{g.Worker, g.Era, g.Term, issuer, base, g.Horizon})
}

func (c *checker) heirs(a, b int) bool {
	return c.issuers[a].Heirs != "" && c.issuers[a].Heirs == c.issuers[b].Heirs
}

// hand checks the runs of one hand, and collects them.
func (c *checker) hand(issuer, hand int, runs []ledger.Run) {
	last := map[int64]firn.ID{}
	var in *holding // that the last id lay in
	for _, run := range runs {
		c.report.IDs += run.Count
		c.report.Runs++
		c.all = append(c.all, drawn{run.First, run.Last(), int32(issuer), int32(hand)})
		// Consecutive ids of two workers or ticks are consecutive by chance.
		for first := run.First; first <= run.Last(); {
			worker, tick := c.read.of(first)
			end := run.Last()
			for {
				w, t := c.read.of(end)
				if w == worker && t == tick {
					break
				}
				end = first + (end-first)/2
			}
			if first <= last[worker] {
				c.report.problem("%s hand %d: %s after %s", c.issuers[issuer].Name, hand, c.describe(first), c.describe(last[worker]))
			}
			last[worker] = end
			if in = c.inside(in, issuer, worker, tick); in == nil {
				c.report.problem("%s hand %d: %s lies in no term that it was granted", c.issuers[issuer].Name, hand, c.describe(first))
			}
			first = end + 1
		}
	}
}

// ungranted stands for the terms of an issuer whose grants are not known.
var ungranted holding

// inside returns the term of an issuer that a tick lies in, or nil. It looks at
// guess first.
func (c *checker) inside(guess *holding, issuer int, worker int64, tick firn.Tick) *holding {
	if c.issuers[issuer].Grants == nil {
		return &ungranted
	}
	if guess != nil && guess.worker == worker && guess.has(tick) {
		return guess
	}
	for _, t := range c.terms[worker] {
		if t.has(tick) && (t.issuer == issuer || c.heirs(t.issuer, issuer)) {
			return t
		}
	}
	return nil
}

func (h *holding) has(tick firn.Tick) bool { return h.base < tick && tick <= h.top }

// numbers checks that no number of the series is there twice, and that each process's
// increase.
func (c *checker) numbers() {
	c.all = c.all[:0]
	describe := func(n firn.ID) string { return fmt.Sprintf("number %d", n) }
	for i := range c.issuers {
		var last firn.ID
		for _, run := range c.issuers[i].Numbers {
			c.report.Numbers += run.Count
			c.all = append(c.all, drawn{run.First, run.Last(), int32(i), 0})
			if run.First <= last {
				c.report.problem("%s: number %d after %d", c.issuers[i].Name, run.First, last)
			}
			last = run.Last()
		}
	}
	c.distinct(describe)
}

// distinct checks that none of all is there twice.
func (c *checker) distinct(describe func(firn.ID) string) {
	slices.SortFunc(c.all, func(a, b drawn) int { return cmp.Compare(a.first, b.first) })
	for i, reach := 1, 0; i < len(c.all); i++ { // reach has the highest last so far
		a, b := &c.all[reach], &c.all[i]
		if b.first <= a.last {
			c.report.Repeated += int64(min(a.last, b.last)-b.first) + 1
			c.report.problem("%s was issued by %s hand %d and by %s hand %d", describe(b.first),
				c.issuers[a.issuer].Name, a.hand, c.issuers[b.issuer].Name, b.hand)
		}
		if b.last > a.last {
			reach = i
		}
	}
}

func (c *checker) describe(id firn.ID) string {
	worker, tick := c.read.of(id)
	return fmt.Sprintf("id %d (worker %d, tick %d)", id, worker, tick)
}
