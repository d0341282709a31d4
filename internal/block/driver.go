package block

import (
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Driver is the machine of a counter and what a process knows beside it: how much to ask
// for and when, since when the store is away, and why nothing was granted. It is a value,
// and what its methods change they return in another. The clocks, the store, sleep and
// goroutines come from outside.
type Driver struct {
	Rules   Rules
	State   State
	Limits  Limits    // Cache is the record's
	Away    time.Time // since when the store does not answer; zero: it answers
	Refused error     // why the last Take was granted nothing; nil after a grant

	pace Pace
	low  int64 // the next block is due when so few numbers are in hand
}

// Start returns the Driver of a counter that nothing is known of but the series' id, if
// that is not empty. The durability p was just heard.
func Start(r Rules, l Limits, id string, seed [32]byte, p store.Durability, now Now) Driver {
	return Driver{Rules: r, Limits: l, State: NewState(seed, p, now).Known(Record{ID: id}, "")}
}

// Due returns what to ask the store for, if anything: what calls want, which is Need and
// Least of want, and what is then to be in hand. There are left numbers in hand, and
// issued ones were given out so far. In a strict series none is taken ahead.
func (d Driver) Due(now Now, want Take, left, issued int64) (Driver, Take, bool) {
	if d.State.Have.Strict {
		return d, want, want.Need > 0
	}
	if want.Need == 0 && (left > d.low || d.Refused != nil) {
		return d, want, false
	}
	if left <= d.low {
		d.pace = d.pace.Next(now.Boot, issued, d.Limits)
		want.Ahead = d.pace.Ahead(left, d.Limits)
		if want.Need <= want.Ahead/2 {
			want.Ahead -= want.Need // a block has as many numbers as its step
		}
	}
	return d, want, want.Need+want.Ahead > 0
}

// Step tells the machine what happened and returns what to do next. Where that is nothing
// after a Take, it says what came of the Take.
func (d Driver) Step(now Now, e Event) (Driver, Action) {
	var do Action
	d.State, do = d.State.Step(&d.Rules, now, e)
	d.Limits.Cache = d.State.Have.Step
	switch {
	case d.State.Fails == 0:
		d.Away = time.Time{}
	case d.Away.IsZero():
		d.Away = now.Wall
	}
	switch {
	case do.Op != record.None || d.State.Over:
	case do.Grant.Count > 0:
		d.Refused, d.low = nil, 0
		d.pace = d.pace.Answered(now.Boot)
		if !d.State.Have.Strict {
			d.low = d.pace.Low(d.Limits)
		}
	case do.Err != nil:
		d.Refused = do.Err
	}
	return d, do
}

// Low is how few numbers are in hand when the next block is due.
func (d Driver) Low() int64 { return d.low }

// Pace is how many numbers are taken ahead.
func (d Driver) Pace() Pace { return d.pace }

// Intervals of looks at a store.
const (
	lookAtFile     = 250 * time.Millisecond // of one that can be replaced as a file
	lookAtInstance = 10 * time.Second       // of a lossy one
)

// LookEvery is how often to Look while nothing is under way, and how long to wait for the
// answer; 0 is never.
func (d Driver) LookEvery() time.Duration {
	switch {
	case d.State.Durability.NoticesLoss:
		return lookAtFile
	case d.State.Have.Instance != "":
		return lookAtInstance
	}
	return 0
}
