package block

import "time"

// A Pace says how many numbers to take ahead of demand, so that a block lasts
// about as long as is wished at the rate of the one before, and when to take
// them, so that nobody waits. It is a value; the zero Pace is that of a start.
type Pace struct {
	step   int64
	rate   float64       // numbers used in a second
	issued int64         // when the last block was asked for
	at     time.Duration // that was, on the boot clock; 0: never
	trip   time.Duration // how long it took
}

// Limits of a Pace.
type Limits struct {
	Cache     int64         // a block has as many numbers, at least
	MaxUnused int64         // not more than so many are ever in hand; this limit holds over the other
	CacheFor  time.Duration // how long a block is to last
}

// Next returns the pace as of boot time now, when issued numbers have been used
// so far. Steps at most double, so that a short burst, or a process that crashes
// again and again, does not take much.
func (p Pace) Next(now time.Duration, issued int64, l Limits) Pace {
	p.rate = p.Rate(now, issued)
	most := max(2*p.step, l.Cache)
	want := min(p.rate*l.CacheFor.Seconds(), float64(most))
	p.step = min(max(int64(want), l.Cache), l.MaxUnused)
	p.issued, p.at = issued, now
	return p
}

// Answered returns the pace when the block asked for by the last Next is there.
func (p Pace) Answered(now time.Duration) Pace {
	p.trip = now - p.at
	return p
}

// Rate is how many numbers are used in a second.
func (p Pace) Rate(now time.Duration, issued int64) float64 {
	const least = 100 * time.Millisecond // shorter spells say little, and much only as a burst
	d := now - p.at
	if p.at == 0 || d <= 0 || issued == p.issued && d < least {
		return p.rate
	}
	return float64(issued-p.issued) / d.Seconds()
}

// Step is how many numbers to take when the next block is due.
func (p Pace) Step() int64 { return p.step }

// Ahead is how many to take when there are left in hand.
func (p Pace) Ahead(left int64, l Limits) int64 { return max(min(p.step, l.MaxUnused-left), 0) }

// Low is how many there are in hand when the next block is due: half of the last
// one, or what is used while three are asked for.
func (p Pace) Low(l Limits) int64 {
	low := max(p.step/2, int64(min(3*p.rate*p.trip.Seconds(), float64(l.MaxUnused))))
	return min(low, l.MaxUnused/2)
}
