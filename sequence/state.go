package sequence

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/supply"
	"github.com/firn-id/firn/store"
)

// A State is where a series stands in one process, with one of its stores.
type State struct {
	Name       string
	Durability store.Durability // as last heard
	Strict     bool             // order: strict
	Lossy      bool             // the store is lossy and that was accepted: best effort
	Granted    firn.ID          // as Info.Granted, as last seen here
	Max        firn.ID

	Cache  int64         // how many numbers the last block was to have
	Rate   float64       // numbers used in a second, here
	Left   int64         // numbers in hand: what a crash would lose
	Lasts  time.Duration // how long those last at this rate; 0 where there is no rate
	Waits  int64         // calls that waited for the store so far, with any store of the series
	Issued int64         // numbers used so far, here
	Wasted int64         // numbers thrown away so far, here: the store may have granted them, or they came too late

	Degraded bool      // the store does not answer
	Away     time.Time // since then; zero: it answers
	Err      error     // the last failure; final when it is a store.ForgotError
}

// State returns where the series stands now; over several stores, with the one
// that has most numbers in hand.
func (s *Series) State() State {
	states := s.States()
	best := states[0]
	for _, st := range states[1:] {
		if st.Left > best.Left {
			best = st
		}
	}
	return best
}

// States returns where the series stands with each of its stores.
func (s *Series) States() []State {
	var all []State
	for _, now := range s.supply.Status() {
		all = append(all, s.state(now))
	}
	return all
}

func (s *Series) state(now supply.Status) State {
	d := &now.Driver
	m := &d.State
	st := State{
		Name: s.name, Durability: m.Durability, Strict: m.Have.Strict,
		Lossy:   !m.Durability.Durable,
		Granted: firn.ID(max(m.Have.Granted, 0)), Max: firn.ID(m.Have.Max),
		Cache: d.Pace().Step(), Rate: d.Pace().Rate(s.clocks().Boot, now.Issued),
		Left: now.Left, Waits: now.Waits, Issued: now.Issued, Wasted: m.Doubtful + now.Thrown,
		Degraded: m.Fails > 0, Away: d.Away, Err: explain(s.name, m.Err),
	}
	if now.Failed != nil {
		st.Left, st.Err = 0, explain(s.name, now.Failed)
	} else if no := (*block.Refusal)(nil); st.Err == nil && (!errors.As(d.Refused, &no) || no.Why != block.Ended || m.Have.Left() == 0) {
		st.Err = explain(s.name, d.Refused) // where too many numbers were asked for, a call for fewer is served
	}
	if st.Rate > 0 {
		st.Lasts = time.Duration(min(float64(st.Left)/st.Rate, 1e9) * float64(time.Second))
	}
	return st
}
