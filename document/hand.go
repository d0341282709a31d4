package document

import (
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/store"
)

// A grant is the counts from next to last of a period.
type grant struct {
	period     string
	next, last int64
	version    store.Version // of the write; "" of what cannot be handed back to the store
	dropped    int           // the drawer's, when it was dealt
}

func (g grant) left() int64 { return g.last - g.next + 1 }

var none = grant{next: 1}

// span is the grant as one of the counter of its period.
func (g grant) span(name string) block.Span {
	return block.Span{Key: dated.KeyCounter(name, g.period), Above: g.next - 1, To: g.last}
}

// deal gives out n counts of those in hand, or as many as there are.
func (d *drawer) deal(n int64) grant {
	g := d.hand
	g.last = min(g.last, g.next+n-1)
	g.dropped = d.dropped
	d.hand.next += g.left()
	return g
}

// undeal takes back what was dealt to a call that has failed: nobody has seen it.
func (d *drawer) undeal(g grant) {
	switch {
	case g.left() <= 0 || g.dropped != d.dropped || d.final != nil:
	case g.version != "" && g.version == d.hand.version && g.last+1 == d.hand.next:
		d.hand.next = g.next
	default:
		d.keep(g)
	}
}

// keep puts counts aside that were granted. Others have counted on since, so they cannot
// be handed back to the store.
func (d *drawer) keep(g grant) {
	g.version = ""
	d.spare = append(d.spare, g)
}

// restock takes in hand what was put aside, where there is nothing else.
func (d *drawer) restock() {
	if d.hand.left() <= 0 && len(d.spare) > 0 {
		d.hand, d.spare = d.spare[0], d.spare[1:]
	}
}

// drop gives up all that is granted and not given out: others may have been granted it.
func (d *drawer) drop() {
	d.hand, d.proof, d.spare = none, none, nil
	d.dropped++
}

// reserved is how many counts are in hand.
func (d *drawer) reserved() int64 {
	n := max(d.hand.left(), 0)
	for _, g := range d.spare {
		n += g.left()
	}
	return n
}

// ready reports whether counts in hand may be given out at this instant without
// asking the store.
func (d *drawer) ready(now instant) bool {
	d.restock()
	if d.hand.left() <= 0 || d.final != nil || d.suspect {
		return false
	}
	period, sure := d.now(now)
	return sure && period == d.hand.period
}
