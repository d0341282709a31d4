package document

import (
	"fmt"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// found takes a counter that was read.
func (d *drawer) found(now instant, rec store.Record) {
	d.see(now, rec.Read)
	period := d.period(rec.Read)
	if d.sight.none {
		period = d.period(now.wall)
	}
	d.known.ok = false
	if rec.Key != dated.KeyCounter(d.name, period) {
		// It is another day than was thought. A clock that goes to and fro is
		// not followed for ever.
		if d.tries++; d.tries == 2*attempts {
			d.fail(&ClockError{d.name, period})
		}
		return
	}
	c, err := dated.ReadCounter(rec)
	switch {
	case err != nil:
		d.fail(err)
		return
	case c.Raised > len(d.def.Raised):
		if d.reread {
			d.forgot(fmt.Sprintf("its counters were raised %d times, and its dated.Definition says %d", c.Raised, len(d.def.Raised)))
			return
		}
		d.suspect = true
		return
	}
	if top, ok := d.own.Top(rec.Key); ok && (c.Count < top || c.Raised < len(d.def.Raised)) {
		if d.reread {
			d.forgot(fmt.Sprintf("%s was counted to %d, and now it is %d", rec.Key, top, c.Count))
			return
		}
		d.suspect = true
		return
	}
	d.known, d.looked, d.blind = held{period, c, rec.Version, true}, true, 0
	own, span, done := d.own.Settle(rec.Key, rec.Version)
	d.own = own
	if done {
		d.granted(grant{period: period, next: span.Above + 1, last: span.To, version: rec.Version})
	}
}

// defined takes the definition as it was read again.
func (d *drawer) defined(rec store.Record) {
	d.reread = true
	if rec.Version == "" {
		d.forgot("it is gone")
		return
	}
	def, err := record.Read[dated.Definition](rec)
	switch {
	case err != nil:
		d.fail(err)
	case def.ID != d.def.ID:
		d.forgot("it was begun anew")
	case len(def.Raised) < len(d.def.Raised):
		d.forgot("its dated.Definition is an older one")
	case d.elsewhere(def):
	default:
		if len(def.Raised) > len(d.def.Raised) {
			// What was granted before may have been forgotten, and given to others.
			d.before, d.own = d.own, block.Own{}
			d.drop()
		}
		d.def = def
	}
}

// heard takes what the store says of its durability.
func (d *drawer) heard(p store.Durability) {
	d.durability = p
	switch {
	case d.elsewhere(d.def):
		return
	case p.Durable:
	case !d.lossy:
		d.distrust(&LossyError{d.name, p.Why})
		return
	case p.Instance != d.def.Instance && d.reread:
		d.drop()
		d.distrust(&InstanceError{d.name, p.Instance, d.def.Instance})
		return
	case p.Instance != d.def.Instance:
		d.suspect = true // it may have been accepted since
		return
	}
	d.suspect, d.proven = false, true
}
