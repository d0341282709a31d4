// Package dated gives out the numbers of documents (dated numbers such as invoices). A store has one
// definition of a series, and a counter for each date. A template is one definition for many names, each
// of which has a counter for each date.
//
//   - dated.go has these records, and what a recovery makes of them; place.go has their keys;
//     period.go has dates.
//   - draw.go, and read.go, write.go, sight.go and hand.go beside it, are the machine: it decides
//     what to ask the store for, and says why nothing repeats.
//   - series.go is the driver: calls that share the machine's writes.
//
// No clock, goroutine or store is in it: they come in through [World].
package dated

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Definition is the record of a series, written once when it begins.
type Definition struct {
	V        int    `json:"v"`
	ID       string `json:"id"` // random, so that a series begun anew is told from this one
	Pattern  string `json:"pattern"`
	Zone     string `json:"zone,omitempty"`
	Lossy    bool   `json:"lossy,omitempty"`    // its creator accepted a lossy store; each process has to accept that itself
	Instance string `json:"instance,omitempty"` // the only instance of the store that it is used with; empty: the store was durable when the series was begun or recovered

	// Store is what the store says of itself, see store.Durability.Identity; empty: nobody has
	// noted it.
	Store string `json:"store,omitempty"`

	// Names is how many names a template has at most; 0 is DefaultNames.
	Names int `json:"names,omitempty"`

	// MayEqual names series whose texts may equal this one's.
	MayEqual []string `json:"may_equal,omitempty"`

	// Raised are the restorations of the store, in order. A counter says up to which of them it
	// has heeded: so one write raises all counters at once.
	Raised []Raise `json:"raised,omitempty"`
}

// A Raise is what one restoration adds to each counter that it may have set back.
type Raise struct {
	By      int64  `json:"by,string"`
	Through string `json:"through,omitempty"` // the latest period there is anywhere; later ones begin as ever

	// Mark tells the restoration from every other, also from those that the store has forgotten
	// since: counters may still come that have heeded one of these. It is higher than all that the
	// store has; see [Recovery.mark]. Zero: its place, counted from 1.
	Mark int64 `json:"mark,omitempty"`
}

// A Recovery is what of a restoration is not of one series.
type Recovery struct {
	Above  int64     // no mark that the store has is higher
	Now    time.Time // by its clock
	Random uint64
}

// markBits is how many bits of a mark are random: the others are seconds since 1970, or count on from
// the last mark. Two restorations may have one time, where clocks differ, and the store may have
// forgotten the first: its mark must not be that of the second, or who has heeded the first would
// take it for the second.
const markBits = 30

// mark is a mark above those of a definition and of the store.
func (r Recovery) mark(d *Definition) int64 {
	return (max(max(d.Mark(), r.Above)>>markBits, r.Now.Unix())+1)<<markBits | int64(r.Random>>(64-markBits))
}

// A Counter is the record of a period. It is never removed, so a clock that goes
// back to the period goes on in it.
type Counter struct {
	V       int   `json:"v"`
	Count   int64 `json:"count,string"`             // last one granted; a text, since many readers round above 2^53
	Reached int64 `json:"reached,string,omitempty"` // where Count was before counts were handed back; 0: not above it
	Raised  int64 `json:"raised,omitempty"`         // mark of the last restoration that it has heeded; 0: none
}

// Counted is the counter that has granted up to n.
func (c Counter) Counted(n int64) Counter {
	c.Count = n
	if n >= c.Reached {
		c.Reached = 0
	}
	return c
}

// RaisedTo is the counter of a period after the restorations it has not heeded.
// One that is not there may have been forgotten, but not those of later periods.
// What was handed back counts as granted: the store may have gone back before that,
// and have forgotten who was granted what lies above.
func (d *Definition) RaisedTo(c Counter, there bool, period string) Counter {
	for i, r := range d.Raised {
		if d.mark(i) > c.Raised && (there || period <= r.Through) {
			// At most above every pattern's max.
			c = c.Counted(min(max(c.Count, c.Reached)+r.By, MaxCount))
		}
	}
	c.V, c.Raised = record.Format, d.Mark()
	return c
}

// mark is that of a restoration.
func (d *Definition) mark(i int) int64 {
	if m := d.Raised[i].Mark; m > 0 {
		return m
	}
	return int64(i) + 1
}

// Mark is that of the last restoration; 0: there was none.
func (d *Definition) Mark() int64 {
	if len(d.Raised) == 0 {
		return 0
	}
	return d.mark(len(d.Raised) - 1)
}

// Recovered is the definition after the store lost something: each counter that there may
// have been goes on by so much higher, in the store and under the instance that answer now.
func (d Definition) Recovered(by int64, through string, r Recovery, p store.Durability) Definition {
	d.Raised = append(slices.Clip(d.Raised), Raise{by, through, r.mark(&d)})
	d.Instance, d.Store = "", p.Identity
	if !p.Durable {
		d.Instance = p.Instance
	}
	return d
}

// Strange reports whether a store of this durability may lack what was given out: another instance answers than
// the one that the series is used with, or the store has become lossy.
func (d *Definition) Strange(p store.Durability) bool {
	return p.Instance != d.Instance && (d.Instance != "" || !p.Durable)
}

func (d Definition) Version() int { return d.V }
func (c Counter) Version() int    { return c.V }

// Fault says what of the record cannot be, and might lower a counter; "" if nothing.
func (d Definition) Fault() string {
	if d.Names < 0 {
		return "has a negative number of names"
	}
	for _, r := range d.Raised {
		if r.By < 0 || r.By >= MaxRaise {
			return fmt.Sprintf("was raised by %d", r.By)
		}
	}
	return ""
}

// Fault says what of the record cannot be; "" if nothing.
func (c Counter) Fault() string {
	switch {
	case min(c.Count, c.Reached, c.Raised) < 0:
		return "has a negative number"
	case max(c.Count, c.Reached) > MaxCount:
		return fmt.Sprintf("has a number above %d", int64(MaxCount))
	}
	return ""
}

// ReadCounter reads a counter. One never written is the zero counter.
func ReadCounter(rec store.Record) (Counter, error) {
	if rec.Version == "" {
		return Counter{}, nil
	}
	return record.Read[Counter](rec)
}

// Limits of a counter.
const (
	MaxCount = 1_000_000_000_000_000_000 // 10^18: above the highest count of every pattern
	MaxRaise = MaxCount                  // above what counters can be raised by
)

// Limits of the names of a template.
const (
	DefaultNames = 1000
	MaxNames     = 100_000
)

// MostNames is how many names a template has at most.
func (d *Definition) MostNames() int { return cmp.Or(d.Names, DefaultNames) }
