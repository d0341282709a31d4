package dated

import (
	"errors"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// take is the write that grants what is wanted.
func (d *drawer) take() Action {
	c := d.def.RaisedTo(d.known.counter, d.known.version != "", d.known.period)
	key := d.Counter(d.known.period)
	if top, ok := d.before.Top(key); ok {
		c.Count = max(c.Count, top)
	}
	if left := max(d.Max-c.Count, 0); left < max(d.least, 1) {
		d.fail(&Refusal{Why: Ended, Period: d.known.period, Left: left, NextAt: d.NextAt(d.known.period)})
		return Action{}
	}
	d.blind++
	g := Grant{Period: d.known.period, Next: c.Count + 1}
	g.Last = c.Count + min(max(d.want, d.Step), d.Max-c.Count)
	c = c.Counted(g.Last)
	return Action{
		Request: record.Request{Op: record.Put, Key: key, Value: record.Encode(c), Cond: store.Condition{Version: d.known.version}},
		is:      toGrant, grant: g,
	}
}

// written takes what came of a write.
func (d *drawer) written(now Instant, do Action, a record.Answer) {
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
		d.own = d.own.Unknown(g.span(d.Place), g.version)
		if d.tries++; d.tries == attempts || g.version == "" {
			d.fail(a.Err)
		}
		return
	}
	d.conflicts = 0
	c, err := ReadCounter(store.Record{Key: do.Key, Value: do.Value, Version: a.Record.Version})
	if err != nil {
		d.fail(err)
		return
	}
	d.known = held{g.Period, c, a.Record.Version, true}
	d.see(now, a.Record.Read)
	if written := a.Record.Written; !d.looked && !written.IsZero() && d.Period(written) != g.Period {
		// The store's clock was set meanwhile: another date. The count is lost.
		d.tries++
		d.own = d.own.Granted(g.span(d.Place), g.version)
		if d.tries == attempts {
			d.fail(&Refusal{Why: WrongClock, Period: d.Period(written)})
		}
		return
	}
	d.granted(g)
}

// granted takes a grant that was acknowledged.
func (d *drawer) granted(g Grant) {
	d.own, d.proof = d.own.Granted(g.span(d.Place), g.version), g
	d.proven = d.durability.Durable && d.def.Instance == ""
}

// handBack is the write that gives back what is in hand, once nothing can be
// given out any more: it goes through only if nobody was granted anything since.
func (d *drawer) handBack() Action {
	to, ok := d.own.HandBack(d.known.version, d.hand.Next-1)
	if d.hand.Left() <= 0 || d.final != nil || d.hand.version != d.known.version || !ok {
		return Action{}
	}
	c := d.known.counter
	c.Reached, c.Count = max(c.Reached, c.Count), to
	return Action{
		Request: record.Request{
			Op: record.Put, Key: d.Counter(d.hand.Period), Value: record.Encode(c),
			Cond: store.Condition{Version: d.known.version},
		},
		is: toHandBack,
	}
}
