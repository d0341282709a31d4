package term

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file has the writes that an operator makes, not a holder. Each raises
// the term, so that a holder that reads its record again never takes what it
// finds for its own, and none lowers a horizon.

// Freed is a worker's record after an operator took the worker away: its
// horizon stays, and is raised to floor. Its time to live stays, too: a store
// that forgets may bring the holder's record back.
func (r Record) Freed(floor firn.Tick) Record {
	return Record{V: record.Format, Term: r.Term + 1, Name: r.Name, Build: r.Build, Horizon: max(r.Horizon, floor), TTL: r.TTL}
}

// Past is the record of a worker that had none: it gives the ticks up to last to
// whoever name is, and who leases the worker next starts above them.
func Past(name string, last firn.Tick) Record {
	return Record{V: record.Format, Term: 1, Name: name, Horizon: last}
}

// NeverHeld reports whether it is certain that a worker without a record was never
// leased, and that no ids of the past were made with it. It is certain only if the store
// cannot lose writes and never could, and if the pool was there from the beginning: a pool
// that may have had a predecessor, or has workers that another pool had, has a floor.
func (p Pool) NeverHeld(forgets bool) bool {
	return !forgets && p.Lossy == "" && p.Floor == 0
}

// Raised is a pool's record with the floor raised to t, above everything that
// was granted: so what the pool knew of its grants is over. It is in the store of
// that identity from now on. Ahead says whose record t is the horizon of, see [Pool.Ahead].
func (p Pool) Raised(t firn.Tick, ahead, identity string) Pool {
	if t > p.Floor {
		p.Floor, p.Ahead = t, ahead
	}
	p.Outage, p.Lossy, p.Store = 0, "", identity
	return p
}

// In is a pool's record in the store of that identity.
func (p Pool) In(identity string) Pool {
	p.Store = identity
	return p
}

// ReadStore reads the store's record.
func ReadStore(rec store.Record) (Store, error) { return record.Read[Store](rec) }

// Encode is a record's JSON.
func (r Record) Encode() []byte { return record.Encode(r) }

// Encode is the record's JSON.
func (p Pool) Encode() []byte { return record.Encode(p) }

// Encode is the record's JSON.
func (s Store) Encode() []byte { return record.Encode(Store{V: record.Format, Floor: s.Floor.UTC()}) }
