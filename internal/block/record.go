package block

import (
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Record is what the store keeps of a counter. It is never deleted. Numbers
// are texts in JSON, since many readers round those above 2^53.
type Record struct {
	V         int    `json:"v"`
	ID        string `json:"id"`                       // random, so that a counter made anew is told from this one
	Granted   int64  `json:"granted,string"`           // highest number granted; one stride below the first before any
	Reached   int64  `json:"reached,string,omitempty"` // where Granted was before numbers were handed back; 0: not above it
	First     int64  `json:"first,string"`             // lowest number of the series, at least 1
	Max       int64  `json:"max,string"`               // nothing above it is granted
	Increment int64  `json:"increment,omitempty"`      // from one number of the series to the next; 0 is 1
	Step      int64  `json:"step,omitempty"`           // how many numbers a process takes at a time, at least
	Strict    bool   `json:"strict,omitempty"`         // numbers increase over all processes, so none is taken ahead
	Lossy     bool   `json:"lossy,omitempty"`          // its creator accepted a lossy store; each process has to accept that itself
	Instance  string `json:"instance,omitempty"`       // of the lossy store that it goes on under
	Store     string `json:"store,omitempty"`          // what its store says of itself, see store.Durability.Identity; empty: nobody has noted it
	Stores    int64  `json:"stores,omitempty"`         // k: the series is spread over so many; 0 is 1
	Offset    int64  `json:"offset,omitempty"`         // of this store, 0 to k-1
	Pending   bool   `json:"pending,omitempty"`        // not all of its stores are known to have it
	Writes    int64  `json:"writes"`                   // rises by one with each, so that a store that went back is noticed

	// For people only.
	Rate float64   `json:"rate,omitempty"` // numbers granted in a second, over the last minute
	At   time.Time `json:"at,omitzero"`    // of the last grant, by the clock of who was granted it
	By   string    `json:"by,omitempty"`   // who that was
}

// Bounds of a record.
const (
	MaxIncrement = 1 << 31
	MaxStores    = 64
)

func (r Record) Version() int { return r.V }

// Fault says what of the record cannot be; "" if nothing.
func (r Record) Fault() string {
	switch {
	case r.ID == "":
		return "has no id"
	case r.First < 1 || r.Max < r.First || r.Step < 0 || r.Writes < 1,
		r.Increment < 0 || r.Increment > MaxIncrement || r.Stores < 0 || r.Stores > MaxStores,
		r.Reached < 0 || r.Reached > r.Max,
		r.Offset < 0 || r.Offset >= max(r.Stores, 1):
		return "has a number that cannot be"
	case r.Granted < r.before() || r.Granted > r.Max || (uint64(r.Granted)-uint64(r.before()))%uint64(r.Stride()) != 0:
		return fmt.Sprintf("says that %d was granted, which is no number of it", r.Granted)
	}
	return ""
}

// Read reads a counter's record. One never written is the zero Record.
func Read(rec store.Record) (Record, error) {
	if rec.Version == "" {
		return Record{}, nil
	}
	return record.Read[Record](rec)
}

// Encode is the reverse of Read.
func (r Record) Encode() []byte { return record.Encode(r) }

// New returns the record of a counter that has granted nothing.
func (r Record) New() Record {
	r.V, r.Writes = record.Format, 1
	r.Granted = r.before()
	return r
}

// Stride is the distance of two numbers that this store grants.
func (r Record) Stride() int64 { return max(r.Increment, 1) * max(r.Stores, 1) }

// before is where nothing is granted yet.
func (r Record) before() int64 { return r.First - (max(r.Stores, 1)-r.Offset)*max(r.Increment, 1) }

// above is n - r.Granted, for n of at least that: it fits unsigned only.
func (r Record) above(n int64) uint64 { return uint64(n) - uint64(r.Granted) }

// Left is how many numbers can still be granted.
func (r Record) Left() int64 {
	if r.Granted >= r.Max {
		return 0
	}
	return int64(min(r.above(r.Max)/uint64(r.Stride()), math.MaxInt64))
}

// Raised returns the record as it is when nothing up to n, which is at most
// Max, is granted any more.
func (r Record) Raised(n int64) Record {
	if n > r.Granted {
		r.Granted += int64(r.above(n) / uint64(r.Stride()) * uint64(r.Stride()))
	}
	r.Writes++
	return r
}

// spell is over how long Rate is taken.
const spell = time.Minute

// RateAt is how many numbers were granted in a second, over the last minute
// before now.
func (r Record) RateAt(now time.Time) float64 {
	if r.At.IsZero() || !now.After(r.At) {
		return r.Rate
	}
	return r.Rate * math.Exp(-now.Sub(r.At).Seconds()/spell.Seconds())
}
