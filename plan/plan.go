// Package plan looks for layouts that can make ids at a rate, by so many workers, for
// so many years, as firn plan does.
//
// Say what is asked in a [Need]; [Need.Proposals] returns the layouts of at most 63 bits
// that have it, best first. If there is none, its [NoneError] says what would do. The
// search is pure: it reads no clock, and the same need at the same instant has the same
// answer. All of it may be called from many goroutines at once.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// MaxRate and MaxYears are the largest values of a [Need].
const (
	MaxRate  = 1e15
	MaxYears = 1000
)

// A Need says what a layout has to be able to do. Set Rate, Workers and Years.
type Need struct {
	// Rate is how many ids per second all workers make together, at most MaxRate.
	Rate float64
	// Workers is how many workers make ids, at least 1.
	Workers int64
	// WorkerRate is how many ids per second one worker has to make, at most Rate. Less than
	// its share of Rate means its share.
	WorkerRate float64
	// Years is how long the layout has to last, counted from the instant of the question, at
	// most MaxYears. A year has 365.2425 days.
	Years float64
	// Above is an id below every id that is made from that instant on, even by a clock that is
	// a minute behind. Zero means that new ids may be of any size.
	Above firn.ID
}

// A Proposal is a layout that satisfies a Need.
type Proposal struct {
	Layout firn.Layout
	// Room is the smallest of three ratios: how many times the needed rate, the needed workers
	// and the needed years the layout has. It is at least 1.
	Room  float64
	Spare int // bits left of 63
}

// A Requirement names what a [Need] asks for.
type Requirement string

// The requirements of a [Need] that are numbers.
const (
	Rate       Requirement = "rate"
	Workers    Requirement = "workers"
	WorkerRate Requirement = "worker rate"
	Years      Requirement = "years"
)

// A RangeError says that a value of a Need is out of range.
type RangeError struct {
	Requirement Requirement
	Value       float64
	Range       string // a sentence that says what can be asked
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("plan: %s %v: %s", e.Requirement, e.Value, e.Range)
}

// A NoneError says that no layout of 63 bits satisfies a Need.
type NoneError struct {
	Need         Need
	WorkerBits   int          // bits that the workers need
	SequenceBits int          // bits that the sequence needs with ticks of 1 ms
	OnlyAbove    bool         // without Need.Above there would be a layout
	Relaxed      []Relaxation // with any one of these there would be a layout
}

// A Relaxation is the largest whole number that one requirement may have while the others stay
// as they are.
type Relaxation struct {
	Requirement Requirement
	Most        float64
}

func (e *NoneError) Error() string {
	if e.OnlyAbove {
		return fmt.Sprintf("plan: nothing that fits in %d bits has ids above %d: an epoch is not before 1970, "+
			"so too much of the time would have passed", widest, e.Need.Above)
	}
	return fmt.Sprintf("plan: nothing fits in %d bits: in ticks of 1ms, %s of workers and %s of sequence leave %s of time", widest,
		inBits(e.WorkerBits), inBits(e.SequenceBits), inBits(max(widest-e.WorkerBits-e.SequenceBits, 0)))
}

func inBits(n int) string {
	if n == 1 {
		return "1 bit"
	}
	return fmt.Sprintf("%d bits", n)
}

// Proposals returns the layouts that have what is asked from now on, best first: those
// known by name; and for ticks of 1 ms, 10 ms, 100 ms and 1 s the one of the fewest bits,
// the roomiest of 53 bits, which JavaScript reads exactly, and the roomiest of all. The
// epoch of one without a name is the start of the year of now, or as early as Above takes.
//
// [firn.Default()] is best, as nothing has to be set; then come those with Room of at least
// 2, the finer tick first, because ids of different workers are in order as finely as
// that; then those with less. More room, a finer tick and fewer bits decide between two
// that are alike.
//
// It returns a [*RangeError] if n cannot be asked, and a [*NoneError] if no layout has it.
func (n Need) Proposals(now time.Time) ([]Proposal, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	all := n.search(now)
	if len(all) == 0 {
		return nil, n.none(now)
	}
	slices.SortStableFunc(all, better)
	return all, nil
}

func (n Need) check() error {
	outside := func(r Requirement, value float64, format string, args ...any) error {
		return &RangeError{r, value, fmt.Sprintf(format, args...)}
	}
	switch {
	case !(n.Rate > 0 && n.Rate <= MaxRate): // so that NaN is none
		return outside(Rate, n.Rate, "it is above 0, and at most %v", float64(MaxRate))
	case !(n.WorkerRate >= 0 && n.WorkerRate <= n.Rate):
		return outside(WorkerRate, n.WorkerRate, "one worker makes at most what all make, %v", n.Rate)
	case n.Workers < 1:
		return outside(Workers, float64(n.Workers), "it is at least 1")
	case !(n.Years > 0 && n.Years <= MaxYears):
		return outside(Years, n.Years, "it is above 0, and at most %d", MaxYears)
	}
	return nil
}

// none says why nothing fits, and what would.
func (n Need) none(now time.Time) *NoneError {
	e := &NoneError{Need: n, Relaxed: n.relaxed(now)}
	e.WorkerBits, e.SequenceBits = n.least(1)
	if n.Above > 0 {
		free := n
		free.Above = 0
		e.OnlyAbove = free.possible(now)
	}
	return e
}

// roomy is with how much room a finer tick counts for more than further room.
const roomy = 2

func better(a, b Proposal) int {
	return cmp.Or(
		soFirst(a.Layout == firn.Default(), b.Layout == firn.Default()),
		soFirst(a.Room >= roomy, b.Room >= roomy),
		cmp.Compare(a.Layout.Unit(), b.Layout.Unit()),
		cmp.Compare(b.Room, a.Room),
		cmp.Compare(a.Layout.Bits(), b.Layout.Bits()))
}

// soFirst orders what is so before what is not.
func soFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
