package term

import "time"

// A Clock is a process's own wall clock: the system's as it was read once,
// advanced by boot time, and led back to the system's slowly. So a step of the
// system's clock, in either direction, neither stops ids nor carries them into
// the future. It is a value.
type Clock struct {
	wall time.Time
	boot time.Duration
}

// slew is the part of elapsed time by which a Clock is led to the system's.
const slew = 20

// NewClock returns a clock that reads wall at boot.
func NewClock(wall time.Time, boot time.Duration) Clock { return Clock{wall, boot} }

// At returns the reading at a boot time.
func (c Clock) At(boot time.Duration) time.Time { return c.wall.Add(boot - c.boot) }

// Follow returns the clock as it goes on from boot, when the system's says wall.
// It approaches that by at most a twentieth of the time since the last call.
// known, if not zero, is a second opinion, the store's time now; skew is the
// bound on both. A system clock that is ahead is followed at once where known
// bears it out. Where known speaks against it, it is followed no further than
// skew from known.
func (c Clock) Follow(wall time.Time, boot time.Duration, known time.Time, skew time.Duration) Clock {
	own := c.At(boot)
	off := wall.Sub(own)
	most := (boot - c.boot) / slew
	if !known.IsZero() {
		if off > most && wall.Sub(known).Abs() <= skew {
			return Clock{wall, boot}
		}
		lead := known.Sub(own)
		off = max(min(off, max(lead+skew, 0)), min(lead-skew, 0))
	}
	return Clock{own.Add(min(max(off, -most), most)), boot}
}
