package term

import (
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Pool is the record of a pool. Its id, layout and limit never change; its floor only
// rises. Workers is the range that members may lease from, and Reserved, where it is set,
// the wider range that no other pool may share meanwhile: the one that is about to become
// Workers, or that is being given up. A pool without Workers is being created.
//
// No grant reaches further ahead than Outage, and a process that takes a worker from a
// lossy store relies on that. A member raises it only as long as Lossy is empty;
// so what a member of such a store relies on was written when the pool was created, and
// no later write that the store may lose. Lossy once set stays: only a recovery, which
// raises the floor above all that was granted, clears both. Outage is never above Limit.
type Pool struct {
	V         int       `json:"v"`
	ID        string    `json:"id"`                   // random, to tell this pool from another one of the same name
	Layout    string    `json:"layout"`               // spec
	Workers   string    `json:"workers,omitempty"`    // "0-1023"
	Reserved  string    `json:"reserved,omitempty"`   // "0-2047"
	Had       string    `json:"had,omitempty"`        // the widest range that it ever had, where that is wider
	Past      firn.Tick `json:"past,omitempty"`       // the highest tick that workers may have issued that were given up
	Floor     firn.Tick `json:"floor,omitempty"`      // no worker issues at or below it
	Ahead     string    `json:"ahead,omitempty"`      // whose record the floor is that of, where a recovery found one further ahead than an outage budget reaches, for people; empty: nobody's
	Outage    int64     `json:"outage_ms,omitempty"`  // the longest outage budget of any member ever; 0: Limit, or 3 s where that is 0
	Limit     int64     `json:"limit_ms,omitempty"`   // the longest outage budget that a member may ever have; 0: nobody said, 5 min
	Lossy     string    `json:"lossy,omitempty"`      // which process saw, when, that the store can lose acknowledged writes, and why; empty: none did
	Store     string    `json:"store,omitempty"`      // what the store says of itself, see store.Durability.Identity; empty: it cannot tell
	MayRepeat string    `json:"may_repeat,omitempty"` // pools whose ids may equal this one's, separated by spaces
}

// LongestOutage is the longest reach of any grant of the pool. Until a member on a store
// that is durable has raised it, it is what the pool was created with, or 3 s.
func (p Pool) LongestOutage() time.Duration {
	switch {
	case p.Outage > 0:
		return time.Duration(p.Outage) * time.Millisecond
	case p.Limit > 0:
		return p.OutageLimit()
	}
	return OutageLossy
}

// OutageLimit is the longest outage budget that any member may ever have.
func (p Pool) OutageLimit() time.Duration {
	if p.Limit == 0 {
		return OutageDurable
	}
	return time.Duration(p.Limit) * time.Millisecond
}

// A Record is what the store keeps of one worker. It is never deleted.
type Record struct {
	V       int       `json:"v"`
	Term    uint64    `json:"term"`             // rises with every acquire, and with every write of anybody but the owner
	Owner   string    `json:"owner,omitempty"`  // 128 random bits, new for every acquiring Put; empty: free
	Name    string    `json:"name,omitempty"`   // of the owner, or of the last one, for people
	Build   string    `json:"build,omitempty"`  // the version of firn of the owner, or of the last one, for people
	Horizon firn.Tick `json:"horizon"`          // highest tick that may have been issued
	TTL     int64     `json:"ttl_ms,omitempty"` // the owner writes again before so many milliseconds, or is taken for dead
}

// A hint is a pool's record of fresh workers. It may be wrong: what counts is
// that a worker's own record is created.
type hint struct {
	V    int   `json:"v"`
	Next int64 `json:"next"` // lower ones were probably held
}

// A Store is the record that holds for every pool of a store.
type Store struct {
	V     int       `json:"v"`
	Floor time.Time `json:"floor"` // a pool founded later starts above it
}

func (p Pool) Version() int   { return p.V }
func (r Record) Version() int { return r.V }
func (h hint) Version() int   { return h.V }
func (s Store) Version() int  { return s.V }

// Fault says what of the record cannot be; "" if nothing.
func (p Pool) Fault() string {
	switch {
	case p.Limit < 0 || p.Limit > math.MaxInt64/int64(time.Millisecond):
		return fmt.Sprintf("has a limit of %d ms for outage budgets", p.Limit)
	case p.Outage < 0 || p.Outage > p.OutageLimit().Milliseconds():
		return fmt.Sprintf("has an outage budget of %d ms, and a limit of %d ms", p.Outage, p.OutageLimit().Milliseconds())
	}
	return ""
}

// Fault says what of the record cannot be; "" if nothing.
func (r Record) Fault() string {
	if r.Horizon < 0 || r.TTL < 0 {
		return "has a negative number"
	}
	return ""
}

// Fault is "": a hint may be wrong.
func (hint) Fault() string { return "" }

// Fault is "": every time is one.
func (Store) Fault() string { return "" }

// ReadRecord reads a worker's record. One never written is the zero Record.
func ReadRecord(rec store.Record) (Record, error) {
	if rec.Version == "" {
		return Record{}, nil
	}
	return record.Read[Record](rec)
}

// ReadPool reads a pool's record.
func ReadPool(rec store.Record) (Pool, error) { return record.Read[Pool](rec) }
