package document

import (
	"errors"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// take is the write that grants what is wanted.
func (d *drawer) take() action {
	c := d.def.RaisedTo(d.known.counter, d.known.version != "", d.known.period)
	key := dated.KeyCounter(d.name, d.known.period)
	if top, ok := d.before.Top(key); ok {
		c.Count = max(c.Count, top)
	}
	if left := max(d.pattern.max-c.Count, 0); left < max(d.least, 1) {
		d.fail(&EndError{Series: d.name, Pattern: d.pattern.text, Period: d.known.period, Max: d.pattern.max, Left: left, NextAt: d.nextAt(d.known.period)})
		return action{}
	}
	d.blind++
	g := grant{period: d.known.period, next: c.Count + 1}
	g.last = c.Count + min(max(d.want, d.step), d.pattern.max-c.Count)
	c = c.Counted(g.last)
	return action{
		Request: record.Request{Op: record.Put, Key: key, Value: record.Encode(c), Cond: store.Condition{Version: d.known.version}},
		is:      toGrant, grant: g,
	}
}

// written takes what came of a write.
func (d *drawer) written(now instant, do action, a record.Answer) {
	g := do.grant
	g.version = a.Record.Version
	switch {
	case errors.Is(a.Err, store.ErrConflict):
		d.known.ok, d.looked = false, false
		d.conflicts++
		return
	case a.Err != nil:
		// It may have been carried out, or may yet be: what the record says next
		// tells, if it bears this Version.
		d.known.ok, d.looked = false, false
		d.own = d.own.Unknown(g.span(d.name), g.version)
		if d.tries++; d.tries == attempts || g.version == "" {
			d.fail(a.Err)
		}
		return
	}
	d.conflicts = 0
	c, err := dated.ReadCounter(store.Record{Key: do.Key, Value: do.Value, Version: a.Record.Version})
	if err != nil {
		d.fail(err)
		return
	}
	d.known = held{g.period, c, a.Record.Version, true}
	d.see(now, a.Record.Read)
	if written := a.Record.Written; !d.looked && !written.IsZero() && d.period(written) != g.period {
		// The store's clock was set meanwhile: another date. The count is lost.
		d.tries++
		d.own = d.own.Granted(g.span(d.name), g.version)
		if d.tries == attempts {
			d.fail(&ClockError{d.name, d.period(written)})
		}
		return
	}
	d.granted(g)
}

// granted takes a grant that was acknowledged.
func (d *drawer) granted(g grant) {
	d.own, d.proof = d.own.Granted(g.span(d.name), g.version), g
	d.proven = d.durability.Durable
}

// handBack is the write that gives back what is in hand, once nothing can be
// given out any more: it goes through only if nobody was granted anything since.
func (d *drawer) handBack() action {
	to, ok := d.own.HandBack(d.known.version, d.hand.next-1)
	if d.hand.left() <= 0 || d.final != nil || d.hand.version != d.known.version || !ok {
		return action{}
	}
	c := d.known.counter
	c.Reached, c.Count = max(c.Reached, c.Count), to
	return action{
		Request: record.Request{
			Op: record.Put, Key: dated.KeyCounter(d.name, d.hand.period), Value: record.Encode(c),
			Cond: store.Condition{Version: d.known.version},
		},
		is: toHandBack,
	}
}
