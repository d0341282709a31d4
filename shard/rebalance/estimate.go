package rebalance

import (
	"slices"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// An Estimate says what the moves of a plan are expected to take. A range is what [move.Plan] gives: on idle servers, and
// at most under the load that was measured.
type Estimate struct {
	Moves     int   // of up to 32 shards each, between two servers
	Unknown   int   // moves whose copy is not estimated, because no table is large enough to measure; the times are without them
	Copy      Range // of all moves, as many at once as Options.Parallel says; at most one after the other
	Longest   Range // of the move whose copy takes longest
	WAL       int64 // that a server keeps at most at once, in bytes
	WALServer string
	Pause     Range // of the shard with the longest pause
	Pauses    Range // of all shards, one after the other
}

// A Range is from the shortest time to the longest that is expected.
type Range struct{ Least, Most time.Duration }

func (r *Range) add(least, most time.Duration) { r.Least, r.Most = r.Least+least, r.Most+most }

func (r *Range) grow(least, most time.Duration) {
	r.Least, r.Most = max(r.Least, least), max(r.Most, most)
}

// Estimate returns what the moves are expected to take, by what [Plan.Check] has measured. It is zero before Check, and
// where Check has found obstacles: then nothing was measured.
func (p *Plan) Estimate() (e Estimate) {
	if slices.ContainsFunc(p.checked, func(one *move.Plan) bool { return len(one.Obstacles) > 0 }) {
		return e
	}
	for _, one := range withRates(p.checked) {
		e.Pause.grow(one.Pause, one.PauseMost)
		shards := time.Duration(len(one.Shards))
		e.Pauses.add(shards*one.Pause, shards*one.PauseMost)
		if kept := one.WALKept(); kept > e.WAL || e.WALServer == "" {
			e.WAL, e.WALServer = kept, one.Source
		}
		for _, part := range one.Parts() {
			e.Moves++
			least, most := part.CopyTime()
			if most == 0 {
				e.Unknown++
			}
			e.Copy.add(least, most)
			e.Longest.grow(least, most)
		}
	}
	e.Copy.Least = max(e.Longest.Least, e.Copy.Least/time.Duration(max(p.parallel, 1)))
	return e
}

// withRates are plans, of which those without a rate of the copy have that of another plan from the same source.
func withRates(plans []*move.Plan) []*move.Plan {
	all := make([]*move.Plan, len(plans))
	for i, one := range plans {
		c := *one
		for _, other := range plans {
			if c.Measured.CopyRate == 0 && other.Source == c.Source {
				c.Measured.CopyRate = other.Measured.CopyRate
			}
		}
		all[i] = &c
	}
	return all
}
