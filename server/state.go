package server

import (
	"errors"
	"fmt"
	"time"
)

// A State is what a series says of itself now, for readiness, metrics and people.
// What does not apply is zero.
type State struct {
	Kind  string // flake, segment, ticket, serial
	Store string // the URL, without secrets
	Class string // strict or lossy
	Why   string // what was seen of the store

	Degraded bool  // the store does not answer
	Over     bool  // it has given all there was: no other server could do better
	Err      error // why nothing can be had, or the last failure where it is Degraded

	// How long it goes on without its store: until then; and that is at most so long, or
	// of numbers what a segment is to last.
	Until  time.Time
	Budget time.Duration

	// Of a lease.
	Pool        string
	Worker      []int64       // one a lane
	Term        uint64        // of the first lane
	Since       time.Time     // held
	Renewed     time.Time     // the store acknowledged it last
	ClockOffset time.Duration // of this clock from the one ids are made by
	Borrowed    time.Duration // ahead of the clock
	Waits       int64         // calls that waited for the clock
	Ended       time.Time     // when the layout or the numbers are used up, at this rate

	// Of numbers.
	Next      int64 // nobody was granted it or one above it, as far as is known here
	Last      int64 // the highest there can be
	Increment int64 // from one number to the next; 0 is 1
	Left      int64 // reserved here, and not used
	Ahead     int64 // in the next segment, of those
	Waste     int64 // thrown away here
}

// leastMargin is how long before the end a series is not ready any more, at least.
const leastMargin = time.Second

// Ready returns nil where the series can issue and will for a while without its
// store. One whose store is away is not ready when less than a third of its Budget
// is left, at least 1 s: whoever sends work is to have gone elsewhere before ids end. One that
// is Over is ready: it is no reason to go to another server.
func (s State) Ready(now time.Time) error {
	if s.Over {
		return nil
	}
	if !s.Degraded {
		if s.Err != nil {
			return fmt.Errorf("nothing can be issued: %w", s.Err)
		}
		return nil
	}
	because := s.Err
	if because == nil {
		because = errors.New("it does not answer")
	}
	if s.Until.IsZero() {
		if s.Left > 0 {
			return nil
		}
		return fmt.Errorf("the store is away, and nothing is left: %w", because)
	}
	left := s.Until.Sub(now)
	if left > max(s.Budget/3, leastMargin) {
		return nil
	}
	return fmt.Errorf("the store is away, and ids end in %s: %w", max(left, 0).Round(time.Second), because)
}
