package term

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// format is the version of the records' JSON. A reader refuses a later one.
const format = 1

// A Pool is the record of a pool. Its layout never changes; its floor only rises.
// No grant reaches further ahead than Outage, and who takes a worker from a store
// that can forget relies on that. It is raised only as long as Lossy is empty,
// and Lossy once set stays: only a restore, which raises the floor above all that
// was granted, clears both.
type Pool struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`              // random, so that a pool made anew is told from this one
	Layout  string    `json:"layout"`          // spec
	Workers string    `json:"workers"`         // "0-1023", as founded; members may differ
	Floor   firn.Tick `json:"floor,omitempty"` // nothing is started at or below it
	Outage  int64     `json:"outage_ms"`       // the longest outage budget of any member ever; 0: the next member says
	Lossy   string    `json:"lossy,omitempty"` // who saw, and when, that the store can forget what it acknowledged, and why; empty: nobody
}

// outage is the longest reach of any grant of the pool.
func (p Pool) outage() time.Duration { return time.Duration(p.Outage) * time.Millisecond }

// A Record is what the store keeps of one worker. It is never deleted.
type Record struct {
	V       int       `json:"v"`
	Term    uint64    `json:"term"`             // rises with every acquire, and with every write of anybody but the owner
	Owner   string    `json:"owner,omitempty"`  // 128 random bits, new for every acquiring Put; empty: free
	Name    string    `json:"name,omitempty"`   // of the owner, or of the last one, for people
	Horizon firn.Tick `json:"horizon"`          // highest tick that may have been issued
	TTL     int64     `json:"ttl_ms,omitempty"` // the owner writes again before so many milliseconds, or is taken for dead
}

// A Hint is a pool's record of fresh workers. It may be wrong: what counts is
// that a worker's own record is created.
type Hint struct {
	V    int   `json:"v"`
	Next int64 `json:"next"` // lower ones were probably held
}

// A Store is the record that holds for every pool of a store.
type Store struct {
	V     int       `json:"v"`
	Floor time.Time `json:"floor"` // a pool founded later starts above it
}

// A FormatError says that a record cannot be read by this version of firn.
type FormatError struct {
	Key    string
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("lease: record %s: %s", e.Key, e.Reason) }

// A kept is one of the types above.
type kept interface {
	Pool | Record | Hint | Store
	format() int
}

func (p Pool) format() int   { return p.V }
func (r Record) format() int { return r.V }
func (h Hint) format() int   { return h.V }
func (s Store) format() int  { return s.V }

// decode reads a record's JSON into one of the types above.
func decode[T kept](rec store.Record) (v T, err error) {
	err = json.Unmarshal(rec.Value, &v)
	if err == nil && v.format() == format {
		return v, nil
	}
	var head struct{ V int } // that a later firn wrote it says more than why it cannot be read
	if err := json.Unmarshal(rec.Value, &head); err != nil {
		return *new(T), &FormatError{rec.Key, err.Error()}
	}
	switch {
	case head.V > format:
		return *new(T), &FormatError{rec.Key, fmt.Sprintf("has format %d, written by a later firn; this one knows %d", head.V, format)}
	case head.V < 1:
		return *new(T), &FormatError{rec.Key, "has no format number"}
	}
	return *new(T), &FormatError{rec.Key, err.Error()}
}

// ReadRecord reads a worker's record. One never written is the zero Record.
func ReadRecord(rec store.Record) (Record, error) {
	if rec.Version == "" {
		return Record{}, nil
	}
	r, err := decode[Record](rec)
	if err == nil && (r.Horizon < 0 || r.TTL < 0) {
		err = &FormatError{rec.Key, "has a negative number"}
	}
	return r, err
}

// ReadPool reads a pool's record.
func ReadPool(rec store.Record) (Pool, error) {
	p, err := decode[Pool](rec)
	if err == nil && (p.Outage < 0 || p.outage().Milliseconds() != p.Outage) {
		err = &FormatError{rec.Key, fmt.Sprintf("has an outage budget of %d ms", p.Outage)}
	}
	return p, err
}

// encode is the reverse of decode. The types above always marshal.
func encode[T kept](v T) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// workerOf is the number in a worker's key.
func workerOf(pool, key string) (int64, bool) {
	s, ok := strings.CutPrefix(key, keyWorkers(pool))
	n, err := strconv.ParseInt(s, 10, 64)
	return n, ok && err == nil && n >= 0
}
