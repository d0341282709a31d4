package document

import (
	"time"
)

// A series counts on in the date of the store's clock. This file says which that is, by the
// last reading and the process's own clocks.

// A sight is the store's clock as it was last read.
type sight struct {
	store time.Time // zero: the store has no clock, or it was not read yet
	sent  instant   // before
	at    instant   // after
	none  bool      // it has no clock: the process's own gives the date
}

// see takes a reading of the store's clock.
func (d *drawer) see(now instant, read time.Time) {
	d.sight = sight{store: read, sent: d.sent, at: now, none: read.IsZero()}
}

// now returns the date of the store's clock, and whether that is sure: it was
// read a moment ago, and is not about to change.
func (d *drawer) now(now instant) (period string, sure bool) {
	s := &d.sight
	if d.pattern.date == nil {
		return "", true
	}
	if s.none {
		return d.period(now.wall), true
	}
	if s.store.IsZero() {
		return d.period(now.wall), false
	}
	age := now.mono - s.at.mono
	early, late := s.store.Add(age-slop), s.store.Add(now.mono-s.sent.mono+slop)
	period = d.period(s.store.Add(age))
	// Where the two clocks of this process disagree, it was suspended, or its
	// clock was set.
	asleep := now.wall.Sub(s.at.wall) - age
	sure = now.mono-s.sent.mono <= sightFor && asleep.Abs() <= slop && d.period(early) == period && d.period(late) == period
	return period, sure
}
