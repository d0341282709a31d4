package server

import (
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

	Degraded bool      // the store does not answer
	Over     bool      // it has given all there was: no other server could do better
	Err      error     // why nothing can be had, or the last failure where it is Degraded
	Away     time.Time // it is so since then, as far as is known

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

// An UnreadyError says why a series is not ready. Its text is for everybody; Err is the
// cause, which may have the address of a store in it: see [Details].
type UnreadyError struct {
	Trouble string
	Err     error // nil: not known
}

func (e *UnreadyError) Error() string { return e.Trouble }

func (e *UnreadyError) Unwrap() error { return e.Err }

// Ready returns nil where the series can issue and will for a while without its
// store, else an *UnreadyError. One whose store is away is not ready when less than a
// third of its Budget is left, at least 1 s: whoever sends work is to have gone elsewhere
// before ids end. One that is Over is ready: it is no reason to go to another server.
func (s State) Ready(now time.Time) error {
	since := ""
	if !s.Away.IsZero() {
		since = " since " + instant(s.Away)
	}
	switch left := s.Until.Sub(now); {
	case s.Over:
		return nil
	case !s.Degraded && s.Err == nil:
		return nil
	case !s.Degraded:
		return &UnreadyError{"nothing can be issued" + since, s.Err}
	case s.Until.IsZero() && s.Left > 0:
		return nil
	case s.Until.IsZero():
		return &UnreadyError{"the store does not answer" + since + ", and nothing is left", s.Err}
	case left <= max(s.Budget/3, leastMargin):
		return &UnreadyError{fmt.Sprintf("the store does not answer%s, and ids end in %s", since, max(left, 0).Round(time.Second)), s.Err}
	}
	return nil
}

// Trouble is what is wrong with the series now, in words that everybody may read, whether
// it is ready or not; "" where all is well.
func (s State) Trouble(now time.Time) string {
	err := s.Ready(now)
	switch {
	case err != nil:
		return err.Error()
	case s.Over:
		return "it has given all there was"
	case s.Degraded && s.Away.IsZero():
		return "the store does not answer"
	case s.Degraded:
		return "the store does not answer since " + instant(s.Away)
	case s.Err != nil:
		return "the last request failed"
	}
	return ""
}
