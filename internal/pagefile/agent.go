package pagefile

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// An Agent is the side of a page that holds the lease. Its methods must not be called at once.
type Agent struct {
	*Header
	Memory Memory

	horizon uint64 // highest that was ever stored
	seen    uint64 // Number, as last seen
	closed  bool
	last    uint64 // once closed: nothing above was issued, nor will be
}

// NewAgent writes the words of a page that has no name yet. The header's Base says above which tick it issues.
func NewAgent(h *Header, m Memory, horizon firn.Tick) *Agent {
	a := &Agent{Header: h, Memory: m, seen: h.Base}
	m.Store(Number, h.Base)
	a.Extend(horizon)
	return a
}

// Extend raises the horizon. Call it only with a horizon that the store has confirmed.
func (a *Agent) Extend(horizon firn.Tick) {
	top := a.Last(min(max(horizon, 0), a.MaxTick()))
	if a.closed || top <= a.horizon {
		return
	}
	a.horizon = top
	a.Memory.Store(Horizon, top)
}

// Close closes the page permanently, and returns a tick above which it has issued nothing and never will.
func (a *Agent) Close() firn.Tick {
	if !a.closed {
		a.closed = true
		word := a.Memory.Swap(Number, Closed)
		a.Memory.Store(ClosedAt, word)
		// A client that took a number before the exchange took no higher one. After it, none takes any.
		a.last = min(word, a.horizon)
		if word < a.seen { // it was damaged: any number up to the horizon may be out
			a.last = a.horizon
		}
	}
	return a.TickOf(a.last)
}

// Condemn closes a page that was damaged: any number up to the horizon may have been issued, or may yet be.
func (a *Agent) Condemn() {
	a.Close()
	a.last = a.horizon
}

// tooFar is how far Number may be ahead of the clock before the agent gives up the page: with right clients it
// is never further ahead than Ahead.
const tooFar = int64(time.Second)

// Check returns what is wrong with the page. now is nanoseconds since the layout's epoch.
func (a *Agent) Check(now int64) error {
	if a.closed {
		return nil
	}
	word := a.Memory.Load(Number)
	switch {
	case word == Closed:
		return errors.New("another program closed it")
	case word < a.seen:
		return errors.New("another program lowered its word")
	case a.Memory.Load(Horizon) != a.horizon:
		return errors.New("another program changed its horizon")
	}
	a.seen = word
	if ahead := int64(word>>a.SeqBits)*a.Tick - now; ahead > tooFar+a.Ahead && word > a.Base {
		return &AheadError{time.Duration(ahead)}
	}
	return nil
}

// An AheadError says that the numbers of a page have run away from the clock. Another term starts near the clock again.
type AheadError struct {
	Ahead time.Duration
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("its ids are %s ahead of the clock", e.Ahead.Round(time.Millisecond))
}

// Taken returns how many numbers were taken between two values of Number, as far as they say: the low bits
// run on from tick to tick, so it is exact where less than Even+1 were taken. Else it is less by a
// multiple of that.
func (h *Header) Taken(from, to uint64) uint64 { return (to - from) & h.Even }

// A Term is a term of a lease that an Issuer issues the ids of. See lease.Lease.Delegate.
type Term struct {
	Pool, PoolID string
	Layout       firn.Layout
	Shard        int64
	Number       uint64 // of the term
	Grant        firn.Grant
	Ahead        time.Duration // how far ids may run ahead of the clock
	Now          time.Time     // what the lease's own clock says
}

// An Issuer issues the ids of one term. Its methods are called from one goroutine, and do not block.
type Issuer interface {
	// Extend raises the horizon to one that the store has confirmed.
	Extend(horizon firn.Tick)

	// SetClock says what the lease's own clock says now.
	SetClock(now time.Time)

	// Close ends issuing permanently and returns a tick above which nothing was issued, nor will be. It
	// may be called more than once.
	Close() firn.Tick
}
