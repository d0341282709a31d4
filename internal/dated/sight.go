package dated

import (
	"time"
)

// A series counts on in the date of the store's clock. This file says which that is, by the
// last reading and the process's own clocks.

// A sight is the store's clock as it was last read.
type sight struct {
	store time.Time // zero: the store has no clock, or it was not read yet
	sent  Instant   // before
	at    Instant   // after
	none  bool      // it has no clock: the process's own gives the date
}

// see takes a reading of the store's clock.
func (d *drawer) see(now Instant, read time.Time) {
	d.sight = sight{store: read, sent: d.sent, at: now, none: read.IsZero()}
}

// now returns the date of the store's clock, and whether that is sure: it was
// read a moment ago, and is not about to change.
func (d *drawer) now(now Instant) (period string, sure bool) {
	s := &d.sight
	if d.Date == nil {
		return "", true
	}
	if s.none {
		return d.Period(now.Wall), true
	}
	if s.store.IsZero() {
		return d.Period(now.Wall), false
	}
	age := now.Mono - s.at.Mono
	early, late := s.store.Add(age-slop), s.store.Add(now.Mono-s.sent.Mono+slop)
	period = d.Period(s.store.Add(age))
	// Where the two clocks of this process disagree, it was suspended, or its
	// clock was set: be it while the store was asked.
	asleep := now.Wall.Sub(s.sent.Wall) - (now.Mono - s.sent.Mono)
	sure = now.Mono-s.sent.Mono <= sightFor && asleep.Abs() <= slop && d.Period(early) == period && d.Period(late) == period
	return period, sure
}
