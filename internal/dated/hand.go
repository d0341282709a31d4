package dated

import (
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

// A Grant is the counts from Next to Last of a period.
type Grant struct {
	Period     string
	Next, Last int64

	version store.Version // of the write; "" of what cannot be handed back to the store
	dropped int           // the drawer's, when it was dealt
}

// Left is how many counts there are.
func (g Grant) Left() int64 { return g.Last - g.Next + 1 }

var none = Grant{Next: 1}

// span is the grant as one of the counter of its period.
func (g Grant) span(p Place) block.Span {
	return block.Span{Key: p.Counter(g.Period), Above: g.Next - 1, To: g.Last}
}

// deal gives out n counts of those in hand, or as many as there are.
func (d *drawer) deal(n int64) Grant {
	g := d.hand
	g.Last = min(g.Last, g.Next+n-1)
	g.dropped = d.dropped
	d.hand.Next += g.Left()
	return g
}

// undeal takes back what was dealt to a call that has failed: nobody has seen it.
func (d *drawer) undeal(g Grant) {
	switch {
	case g.Left() <= 0 || g.dropped != d.dropped || d.final != nil:
	case g.version != "" && g.version == d.hand.version && g.Last+1 == d.hand.Next:
		d.hand.Next = g.Next
	default:
		d.keep(g)
	}
}

// keep puts counts aside that were granted. Others have counted on since, so they cannot
// be handed back to the store.
func (d *drawer) keep(g Grant) {
	g.version = ""
	d.spare = append(d.spare, g)
}

// restock takes in hand what was put aside, where there is nothing else.
func (d *drawer) restock() {
	if d.hand.Left() <= 0 && len(d.spare) > 0 {
		d.hand, d.spare = d.spare[0], d.spare[1:]
	}
}

// drop gives up all that is granted and not given out: others may have been granted it.
func (d *drawer) drop() {
	d.hand, d.proof, d.spare = none, none, nil
	d.dropped++
}

// Reserved is how many counts are in hand.
func (d *drawer) Reserved() int64 {
	n := max(d.hand.Left(), 0)
	for _, g := range d.spare {
		n += g.Left()
	}
	return n
}

// ready reports whether counts in hand may be given out at this Instant without
// asking the store.
func (d *drawer) ready(now Instant) bool {
	d.restock()
	if d.hand.Left() <= 0 || d.final != nil || d.suspect {
		return false
	}
	period, sure := d.now(now)
	return sure && period == d.hand.Period
}
