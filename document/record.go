package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
)

// format is the version of the records' JSON. A reader refuses a later one.
const format = 1

// A definition is the record of a series, written once when it begins.
type definition struct {
	V        int    `json:"v"`
	ID       string `json:"id"` // random, so that a series begun anew is told from this one
	Pattern  string `json:"pattern"`
	Zone     string `json:"zone,omitempty"`
	Instance string `json:"instance,omitempty"` // of the store, under which it goes on where that can forget

	// Store is what the store says of itself, see store.Promise.Identity; empty: nobody has
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
	c.V, c.Raised = format, len(d.Raised)
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
func (d definition) restored(r Restoration, p store.Promise) definition {
	d.Raised = append(slices.Clip(d.Raised), raise{r.By, r.Through})
	d.Instance, d.Store = p.Instance, p.Identity
	return d
}

// A FormatError says that a record cannot be read by this version of firn.
type FormatError struct {
	Key    string
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("document: record %s: %s", e.Key, e.Reason) }

// A kept is one of the types above.
type kept interface {
	definition | counter
	fault() string
}

// fault says what of a record cannot be, and might lower a counter; "" if nothing.
func (d definition) fault() string {
	for _, r := range d.Raised {
		if r.By < 0 || r.By >= MaxRaise {
			return fmt.Sprintf("was raised by %d", r.By)
		}
	}
	return ""
}

func (c counter) fault() string {
	switch most := pow10(maxDigits); {
	case min(c.Count, c.Reached, int64(c.Raised)) < 0:
		return "has a negative number"
	case max(c.Count, c.Reached) > most:
		return fmt.Sprintf("has a number above %d", most)
	}
	return ""
}

// decode reads a record's JSON.
func decode[T kept](rec store.Record) (v T, err error) {
	var head struct{ V int }
	switch err := json.Unmarshal(rec.Value, &head); {
	case err != nil:
		return v, &FormatError{rec.Key, err.Error()}
	case head.V > format:
		return v, &FormatError{rec.Key, fmt.Sprintf("has format %d, written by a later firn; this one knows %d", head.V, format)}
	case head.V < 1:
		return v, &FormatError{rec.Key, "has no format number"}
	}
	if err := json.Unmarshal(rec.Value, &v); err != nil {
		return v, &FormatError{rec.Key, err.Error()}
	}
	if reason := v.fault(); reason != "" {
		return v, &FormatError{rec.Key, reason}
	}
	return v, nil
}

// readCounter reads a counter. One never written is the zero counter.
func readCounter(rec store.Record) (counter, error) {
	if rec.Version == "" {
		return counter{}, nil
	}
	return decode[counter](rec)
}

// encode is the reverse of decode. The types above always marshal.
func encode[T kept](v T) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
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
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("document: series %.50q: a name has 1 to %d bytes, not %d", name, maxName, len(name))
	case strings.Contains(name, "/"):
		return fmt.Errorf("document: series %q: a name has no slash", name)
	case store.CheckKey(name) != nil:
		return fmt.Errorf("document: series %q: a name is printable ASCII without spaces", name)
	}
	return nil
}
