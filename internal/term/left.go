package term

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Left returns for how long the holder of a worker has it if it does not write again: zero where there
// is no holder, or where it counts as dead. Lossy says that the pool goes by the rules for a lossy
// store. A store without a clock does not say when a holder last wrote: there it is all of its
// time to live.
func (r Record) Left(rec store.Record, lossy bool) time.Duration {
	if r.Owner == "" {
		return 0
	}
	ttl := time.Duration(r.TTL) * time.Millisecond
	if lossy { // others take it so much later there
		ttl += 2 * Skew
	}
	// A store's clock that was set back says nothing of how long ago the write was.
	return max(ttl-max(rec.Read.Sub(rec.Written), 0), 0)
}

// Unusable returns for how long no process leases a worker with such a horizon, which is too far ahead
// of a clock that says wall; zero where it is near enough for a process to wait.
func (r *Rules) Unusable(horizon firn.Tick, wall time.Time) time.Duration {
	if past := r.Delay(horizon, wall); past > r.Wait {
		return past
	}
	return 0
}
