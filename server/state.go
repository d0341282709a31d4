package server

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
)

// A State says how a source is now, for readiness, metrics and people. It is the JSON of the
// API and of the console. What does not apply is zero, and left out of the JSON. There,
// durations are seconds.
type State struct {
	At    time.Time `json:"at"`              // when it was so
	Kind  string    `json:"kind,omitempty"`  // flake, sequence, document
	Store string    `json:"store,omitempty"` // the URL, without secrets

	// Durable reports whether the store keeps every write that it acknowledged. Nil: the
	// store has not been heard yet.
	Durable *bool  `json:"durable,omitempty"`
	Why     string `json:"why,omitempty"` // what was seen of the store

	// UnreadyAlone reports whether the series makes only itself unready, and not the server. So do
	// documents: each of their values needs the store, and no other server could do better.
	UnreadyAlone bool `json:"-"`

	StoreAway    bool      `json:"store_away"`             // the store does not answer
	Exhausted    bool      `json:"exhausted"`              // the store has no number left: no other server could do better
	TroubleSince time.Time `json:"trouble_since,omitzero"` // when the store went away, or since when nothing can be issued, as far as is known
	Err          error     `json:"-"`                      // error: why nothing can be issued, or the last failure where the store is away

	StartsAt time.Time     `json:"starts_at,omitzero"` // when the first id can be issued; zero once one could be
	EndsAt   time.Time     `json:"ends_at,omitzero"`   // until when values continue without the store; left_seconds: for how long from At
	Budget   time.Duration `json:"-"`                  // budget_seconds: for how long that is at most; of numbers, how long a block is to last
	UsedUpAt time.Time     `json:"-"`                  // used_up_at: when the layout, or at this rate the numbers, are used up

	Waits int64 `json:"waits"` // calls that had to wait: of a lease for the clock, of numbers for the store

	Lease   *Lease   `json:"lease,omitempty"`   // of a flake
	Counter *Counter `json:"counter,omitempty"` // of all others
}

// A Lease is what a source of ids holds of its pool.
type Lease struct {
	Pool      string        `json:"pool"`
	Workers   []int64       `json:"workers,omitempty"`   // that are held: one a lane
	Layout    firn.Layout   `json:"-"`                   // fields: the values of each worker's fields, where the layout has several
	Term      uint64        `json:"term,omitempty"`      // of the first lane
	LeasedAt  time.Time     `json:"leased_at,omitzero"`  // when the worker of the first lane was leased
	RenewedAt time.Time     `json:"renewed_at,omitzero"` // when the store last extended the lease
	Ahead     time.Duration `json:"-"`                   // ahead_seconds: how far the clock of ids is ahead of the store's, as last read
	Borrowed  time.Duration `json:"-"`                   // borrowed_seconds: how far ids run ahead of the clock
}

// A Counter is what a source of numbers or documents has in hand, and what is left to it. In
// JSON Next and Last are texts: they may be too large for JavaScript.
type Counter struct {
	Next      int64 `json:"next,string,omitzero"` // nobody was granted it or one above it, as far as is known here
	Last      int64 `json:"last,string,omitzero"` // the highest there can be
	Increment int64 `json:"increment,omitzero"`   // from one number to the next; 0 is 1
	Reserved  int64 `json:"reserved"`             // in hand here: not used yet
	Wasted    int64 `json:"wasted"`               // thrown away here
}

// MarshalJSON returns the state as JSON.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State // without this method
	all := struct {
		plain
		Left     *float64 `json:"left_seconds,omitempty"`
		Budget   float64  `json:"budget_seconds,omitzero"`
		UsedUpAt string   `json:"used_up_at,omitempty"` // it may be later than what time.Time has a JSON for
		Error    string   `json:"error,omitempty"`
	}{plain: plain(s), Budget: s.Budget.Seconds()}
	for _, t := range []*time.Time{&all.At, &all.TroubleSince, &all.StartsAt, &all.EndsAt} {
		*t = t.UTC()
	}
	if !s.EndsAt.IsZero() {
		left := s.Left(s.At).Seconds()
		all.Left = &left
	}
	if !s.UsedUpAt.IsZero() {
		all.UsedUpAt = s.UsedUpAt.UTC().Format(time.RFC3339Nano)
	}
	if s.Err != nil {
		all.Error = phrase.Reason(s.Err)
	}
	return json.Marshal(all)
}

// MarshalJSON returns the lease as JSON.
func (l Lease) MarshalJSON() ([]byte, error) {
	type plain Lease // without this method
	l.LeasedAt, l.RenewedAt = l.LeasedAt.UTC(), l.RenewedAt.UTC()
	var fields []map[string]int64
	for _, n := range l.Workers {
		if all := maps.Collect(l.Layout.WorkerFields(n)); len(all) > 1 {
			fields = append(fields, all)
		}
	}
	return json.Marshal(struct {
		plain
		Fields   []map[string]int64 `json:"fields,omitempty"`
		Ahead    float64            `json:"ahead_seconds"`
		Borrowed float64            `json:"borrowed_seconds"`
	}{plain(l), fields, l.Ahead.Seconds(), l.Borrowed.Seconds()})
}

// Left returns for how long values continue from now without the store; zero where that is
// not known.
func (s State) Left(now time.Time) time.Duration {
	if s.EndsAt.IsZero() {
		return 0
	}
	return max(s.EndsAt.Sub(now), 0)
}

// Durability returns "durable" or "lossy", and "" where the store has not been heard yet.
func (s State) Durability() string {
	switch {
	case s.Durable == nil:
		return ""
	case *s.Durable:
		return "durable"
	}
	return "lossy"
}

// Pool returns the name of the pool; "" where the source is none.
func (s State) Pool() string {
	if s.Lease == nil {
		return ""
	}
	return s.Lease.Pool
}

// reserved is how many numbers are in hand.
func (s State) reserved() int64 {
	if s.Counter == nil {
		return 0
	}
	return s.Counter.Reserved
}

// leastMargin is how long before the end a series is not ready any more, at least.
const leastMargin = time.Second

// An UnreadyError says why a series is not ready. Its text is for everybody; Err is the
// cause, which may have the address of a store in it: see [Details].
type UnreadyError struct {
	Trouble  string
	Err      error     // nil: not known
	Hint     string    // what whoever runs the server can do; "" if nothing is to be said
	StartsAt time.Time // when the first value can be had, where that is known
}

func (e *UnreadyError) Error() string { return e.Trouble }

func (e *UnreadyError) Unwrap() error { return e.Err }

// Ready returns nil where the series can issue and will for a while without its
// store, else an *UnreadyError. One whose store is away is not ready when less than a
// third of its Budget is left, at least 1 s: whoever sends work is to have gone elsewhere
// before ids end. One that is Exhausted is ready: it is no reason to go to another server.
func (s State) Ready(now time.Time) error {
	no := func(trouble string) error { return &UnreadyError{Trouble: trouble, Err: s.Err, StartsAt: s.StartsAt} }
	late := s.StartsAt.After(now.Add(leastMargin))
	switch {
	case s.Exhausted:
		return nil
	case !s.StoreAway && s.Err == nil && late:
		return no("ids start at " + instant(s.StartsAt))
	case !s.StoreAway && s.Err == nil:
		return nil
	case !s.StoreAway:
		trouble := "it can issue nothing"
		if !s.TroubleSince.IsZero() {
			trouble += " since " + instant(s.TroubleSince)
		}
		if late {
			trouble += "; ids start at " + instant(s.StartsAt)
		}
		return no(trouble)
	}
	if end := s.ending(now); end != "" {
		return no(s.outage() + end)
	}
	return nil
}

// ending says what follows for a series whose store is away; "" where it will do for a
// while.
func (s State) ending(now time.Time) string {
	left := s.EndsAt.Sub(now)
	counts := s.Counter != nil
	switch {
	case s.reserved() == 0 && (counts || s.EndsAt.IsZero()):
		return ", and there are no numbers until it answers"
	case s.EndsAt.IsZero(), left > max(s.Budget/3, leastMargin):
		return ""
	case counts:
		return ", and the numbers in hand end in " + remaining(left)
	case left <= 0:
		return ", and ids ended at " + instant(s.EndsAt) + "; they resume when it answers"
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
	if s.TroubleSince.IsZero() {
		return "the store does not answer"
	}
	return "the store has not answered since " + instant(s.TroubleSince)
}

// Trouble is what is wrong with the series now, in words that everybody may read, whether
// it is ready or not; "" where all is well.
func (s State) Trouble(now time.Time) string {
	err := s.Ready(now)
	switch {
	case err != nil:
		return err.Error()
	case s.Exhausted:
		return "it has given all there was"
	case s.StoreAway:
		return s.outage()
	case s.Err != nil:
		return "the last request failed"
	}
	return ""
}
