package server

import "time"

// A State is what a series says of itself now, for readiness, metrics and people.
// What does not apply is zero.
type State struct {
	Kind  string // flake, sequence, document
	Store string // the URL, without secrets
	Class string // durable or lossy
	Why   string // what was seen of the store

	Degraded bool      // the store does not answer
	Over     bool      // it has given all there was: no other server could do better
	Err      error     // why nothing can be had, or the last failure where it is Degraded
	Away     time.Time // it is so since then, as far as is known

	// How long it goes on without its store: until then; and that is at most so long, or
	// of numbers what a block is to last.
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
	Ahead     int64 // in the next block, of those
	Waste     int64 // thrown away here
}

// leastMargin is how long before the end a series is not ready any more, at least.
const leastMargin = time.Second

// An UnreadyError says why a series is not ready. Its text is for everybody; Err is the
// cause, which may have the address of a store in it: see [Details].
type UnreadyError struct {
	Trouble string
	Err     error  // nil: not known
	Hint    string // what whoever runs the server can do; "" if nothing is to be said
}

func (e *UnreadyError) Error() string { return e.Trouble }

func (e *UnreadyError) Unwrap() error { return e.Err }

// Ready returns nil where the series can issue and will for a while without its
// store, else an *UnreadyError. One whose store is away is not ready when less than a
// third of its Budget is left, at least 1 s: whoever sends work is to have gone elsewhere
// before ids end. One that is Over is ready: it is no reason to go to another server.
func (s State) Ready(now time.Time) error {
	switch {
	case s.Over, !s.Degraded && s.Err == nil:
		return nil
	case !s.Degraded && s.Away.IsZero():
		return &UnreadyError{Trouble: "it can issue nothing", Err: s.Err}
	case !s.Degraded:
		return &UnreadyError{Trouble: "it can issue nothing since " + instant(s.Away), Err: s.Err}
	}
	if end := s.ending(now); end != "" {
		return &UnreadyError{Trouble: s.outage() + end, Err: s.Err}
	}
	return nil
}

// ending says what follows for a series whose store is away; "" where it will do for a
// while.
func (s State) ending(now time.Time) string {
	left := s.Until.Sub(now)
	counts := s.Left > 0 || s.Last > 0
	switch {
	case counts && s.Left == 0, s.Until.IsZero() && s.Left == 0:
		return ", and no number is left in hand; numbers resume when it answers"
	case s.Until.IsZero(), left > max(s.Budget/3, leastMargin):
		return ""
	case counts:
		return ", and the numbers in hand end in " + remaining(left)
	case left <= 0:
		return ", and ids ended at " + instant(s.Until) + "; they resume when it answers"
	}
	return ", and ids end in " + remaining(left)
}

// remaining is how long something still lasts, in whole seconds.
func remaining(left time.Duration) string {
	if left < time.Second {
		return "less than 1s"
	}
	return left.Round(time.Second).String()
}

// outage says that the store is away, and since when.
func (s State) outage() string {
	if s.Away.IsZero() {
		return "the store does not answer"
	}
	return "the store has not answered since " + instant(s.Away)
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
	case s.Degraded:
		return s.outage()
	case s.Err != nil:
		return "the last request failed"
	}
	return ""
}
