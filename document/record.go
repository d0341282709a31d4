package document

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A definition is the record of a series, written once when it begins.
type definition struct {
	V        int    `json:"v"`
	ID       string `json:"id"` // random, so that a series begun anew is told from this one
	Pattern  string `json:"pattern"`
	Zone     string `json:"zone,omitempty"`
	Instance string `json:"instance,omitempty"` // of the store, under which it goes on where that can forget

	// Store is what the store says of itself, see store.Durability.Identity; empty: nobody has
	// noted it.
	Store string `json:"store,omitempty"`

	// Raised are the restorations of the store, in order. A counter says how many
	// of them it has heeded: so one write raises all counters at once.
	Raised []raise `json:"raised,omitempty"`
}

// A raise is what one restoration adds to each counter that it may have set back.
type raise struct {
	By      int64  `json:"by,string"`
	Through string `json:"through,omitempty"` // the latest period there is anywhere; later ones begin as ever
}

// A counter is the record of a period. It is never removed, so a clock that goes
// back to the period goes on in it.
type counter struct {
	V       int   `json:"v"`
	Count   int64 `json:"count,string"`             // last one granted; a text, since many readers round above 2^53
	Reached int64 `json:"reached,string,omitempty"` // where Count was before counts were handed back; 0: not above it
	Raised  int   `json:"raised,omitempty"`
}

// counted is the counter that has granted up to n.
func (c counter) counted(n int64) counter {
	c.Count = n
	if n >= c.Reached {
		c.Reached = 0
	}
	return c
}

// raisedTo is the counter of a period after the restorations it has not heeded.
// One that is not there may have been forgotten, but not those of later periods.
// What was handed back counts as granted: the store may have gone back before that,
// and have forgotten who was granted what lies above.
func (d *definition) raisedTo(c counter, there bool, period string) counter {
	for _, r := range d.Raised[min(c.Raised, len(d.Raised)):] {
		if there || period <= r.Through {
			// At most above every pattern's max.
			c = c.counted(min(max(c.Count, c.Reached)+r.By, pow10(maxDigits)))
		}
	}
	c.V, c.Raised = record.Format, len(d.Raised)
	return c
}

// skew is how far the clocks of a store's servers may differ.
const skew = 5 * time.Second

// east is the zone where each date begins first: the store may have forgotten, too,
// that the series had another zone, and what was counted there.
var east = time.FixedZone("", 14*60*60)

// through is the latest period that has begun in any zone.
func (r rules) through(now time.Time) string {
	r.zone = east
	return r.period(now.Add(skew))
}

// restored is the definition after a restoration: each counter that there may
// have been goes on by so much higher, in the store and under the instance that answer now.
func (d definition) restored(r Recovery, p store.Durability) definition {
	d.Raised = append(slices.Clip(d.Raised), raise{r.By, r.Through})
	d.Instance, d.Store = p.Instance, p.Identity
	return d
}

func (d definition) Version() int { return d.V }
func (c counter) Version() int    { return c.V }

// Fault says what of the record cannot be, and might lower a counter; "" if nothing.
func (d definition) Fault() string {
	for _, r := range d.Raised {
		if r.By < 0 || r.By >= MaxRaise {
			return fmt.Sprintf("was raised by %d", r.By)
		}
	}
	return ""
}

// Fault says what of the record cannot be; "" if nothing.
func (c counter) Fault() string {
	switch most := pow10(maxDigits); {
	case min(c.Count, c.Reached, int64(c.Raised)) < 0:
		return "has a negative number"
	case max(c.Count, c.Reached) > most:
		return fmt.Sprintf("has a number above %d", most)
	}
	return ""
}

// readCounter reads a counter. One never written is the zero counter.
func readCounter(rec store.Record) (counter, error) {
	if rec.Version == "" {
		return counter{}, nil
	}
	return record.Read[counter](rec)
}

const (
	keyAll = "serial/" // prefix of every series' records
	whole  = "all"     // the counter of a series without a date

	// The record of a store that was restored once: whatever it has not may have
	// been forgotten, so that no series begins by itself any more.
	keyRestored = "serials"
)

func keySeries(name string) string { return keyAll + name }

func keyCounter(name, period string) string {
	if period == "" {
		period = whole
	}
	return keyAll + name + "/" + period
}

// maxName is the length of a series' name at most, so that every key fits.
const maxName = store.MaxKey - len(keyAll) - len("/-123456789-12-31")

func checkName(name string) error {
	if wrong := record.CheckName("series", name, maxName); wrong != "" {
		return errors.New("document: " + wrong)
	}
	return nil
}
