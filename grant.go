package firn

import "time"

// A HorizonError says that a grant is used up: the clock or the sequence has passed the last
// tick of the grant, and nobody has extended it.
type HorizonError struct {
	Horizon time.Time // the last instant that was granted
}

func (e *HorizonError) Error() string {
	return "firn: nothing is granted after " + e.Horizon.Format(time.RFC3339Nano)
}

// Retryable is true; see [Retryable].
func (*HorizonError) Retryable() bool { return true }

// A Grant is the right to issue ids of a worker in the ticks Base < t <= Horizon.
// Before a process makes a generator of a grant, it writes the grant into a store, so that
// nobody else is ever granted the same ticks of the same worker. Package lease does that. Make
// one generator of each grant.
type Grant struct {
	Worker  int64 // all worker fields of the layout as one number
	Base    Tick  // exclusive, not negative
	Horizon Tick  // inclusive
}
