package dated

import (
	"fmt"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// found takes a counter that was read.
func (d *drawer) found(now Instant, rec store.Record) {
	d.see(now, rec.Read)
	period := d.Period(rec.Read)
	if d.sight.none {
		period = d.Period(now.Wall)
	}
	d.known.ok = false
	if rec.Key != d.Counter(period) {
		// It is another day than was thought. A clock that goes to and fro is
		// not followed for ever.
		if d.tries++; d.tries == 2*attempts {
			d.fail(&Refusal{Why: WrongClock, Period: period})
		}
		return
	}
	c, err := ReadCounter(rec)
	switch {
	case err != nil:
		d.fail(err)
		return
	case c.Raised > d.def.Mark():
		if d.reread {
			d.forgot(rec.Key + " was raised by a recovery that its definition does not have")
			return
		}
		d.suspect = true
		return
	}
	if top, ok := d.own.Top(rec.Key); ok && (c.Count < top || c.Raised < d.def.Mark()) {
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
		d.granted(Grant{Period: period, Next: span.Above + 1, Last: span.To, version: rec.Version})
	}
}

// defined takes the definition as it was read again.
func (d *drawer) defined(rec store.Record) {
	d.reread = true
	if rec.Version == "" {
		d.forgot("it is gone")
		return
	}
	def, err := record.Read[Definition](rec)
	switch {
	case err != nil:
		d.fail(err)
	case def.ID != d.def.ID:
		d.forgot("it was begun anew")
	case def.Mark() < d.def.Mark():
		d.forgot("its definition is an older one")
	case d.elsewhere(def):
	default:
		if def.Mark() > d.def.Mark() {
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
	case !p.Durable && !d.Lossy:
		d.distrust(&Refusal{Why: Lossy, Have: p.Why})
		return
	case d.def.Strange(p) && d.reread:
		d.drop()
		d.distrust(&Refusal{Why: OtherInstance, Have: p.Instance, Want: d.def.Instance})
		return
	case d.def.Strange(p):
		d.suspect = true // it may have been accepted since
		return
	}
	d.suspect, d.proven = false, true
}
