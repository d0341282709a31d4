package pagefile

import "math"

// A Word is the offset of a 64-bit word in a page that changes.
type Word int

// The words of a page. Clients write Number and Draws and nothing else. The words that only the agent writes have a
// cache line of their own.
const (
	Number    Word = 1024 // the last number taken, or Closed
	Horizon   Word = 1152 // the highest number that may be issued
	ClosedAt  Word = 1160 // what Number was when the page was closed; for order
	Monotonic Word = 1168 // what to add to CLOCK_MONOTONIC to get nanoseconds since the layout's epoch; for order
	Boottime  Word = 1176 // the same for CLOCK_BOOTTIME
	Realtime  Word = 1184 // the same for CLOCK_REALTIME
	Draws     Word = 1280 // how many lanes clients have drawn, in the page of lane 0; for an even spread
)

// Closed is the value of Number in a page from which nothing is taken any more. No number has it: the
// highest bit of a number is 0.
const Closed = math.MaxUint64

// A Memory has the words of a page. All accesses are atomic, and sequentially consistent.
type Memory interface {
	Load(Word) uint64
	Store(w Word, value uint64)
	Swap(w Word, value uint64) (old uint64)
	CompareAndSwap(w Word, old, value uint64) bool
}

// A Mark is a flag in the memory of the process. It is set once. All accesses are sequentially consistent.
type Mark interface {
	Load() bool
	Store(bool)
}

// An Answer says what a client does next.
type Answer int

// Answers.
const (
	Take   Answer = iota // take the numbers
	Wait                 // wait until the clock allows the first one
	Ended                // nothing may be taken above the horizon
	Shut                 // the page is closed
	Parted               // this client has left the page meanwhile
)

// A Client takes numbers from a page, for one process. Its methods may be called by several threads at once.
type Client struct {
	*Header
	Memory Memory
	Left   Mark         // that this process has left the page
	Above  uint64       // take only above this number: what the process may have taken from pages before this one
	Clock  func() int64 // reading of a clock, in nanoseconds
	Offset Word         // the offset of that clock
}

// Now returns nanoseconds since the layout's epoch.
func (c *Client) Now() int64 { return c.Clock() + int64(c.Memory.Load(c.Offset)) }

// Take takes up to n numbers, first to last. With an answer other than Take it takes none, and first is the number
// that it would have taken.
func (c *Client) Take(n uint64) (first, last uint64, do Answer) {
	for {
		word := c.Memory.Load(Number)
		first, last, do = c.Look(word, c.Memory.Load(Horizon), c.Above, c.Now(), n)
		if do != Take {
			return first, 0, do
		}
		if !c.Memory.CompareAndSwap(Number, word, last) {
			continue
		}
		// The numbers are taken first and compared after, on their own values. So the horizon
		// holds however long this process pauses anywhere.
		if last > c.Memory.Load(Horizon) {
			return first, 0, Ended
		}
		if c.Left.Load() {
			return first, 0, Parted
		}
		return first, last, Take
	}
}

// Look says what a client does that finds these values, takes only above some number, and wants n numbers. It is all
// of a client that is not memory. A client that is refused, or waits, does not write.
func (h *Header) Look(word, horizon, above uint64, now int64, n uint64) (first, last uint64, do Answer) {
	if word == Closed {
		return 0, 0, Shut
	}
	first = max(word, above) + 1
	if first > horizon {
		return first, 0, Ended
	}
	clock, tick := uint64(max(now, 0)), uint64(h.Tick)
	if clock >= (first>>h.SeqBits+1)*tick { // the tick of first is over
		t := clock / tick
		if t > horizon>>h.SeqBits {
			return first, 0, Ended
		}
		first = t<<h.SeqBits | first&h.Even
	}
	if first>>h.SeqBits*tick > clock+uint64(h.Ahead) {
		return first, 0, Wait
	}
	allowed := ((clock+uint64(h.Ahead))/tick+1)<<h.SeqBits - 1
	return first, min(first+n-1, horizon, allowed), Take
}

// Draw returns the lane that this client takes: each draw gives the next one.
func (c *Client) Draw() uint8 {
	if c.Lanes < 2 || c.Lane != 0 {
		return c.Lane
	}
	for {
		n := c.Memory.Load(Draws)
		if c.Memory.CompareAndSwap(Draws, n, n+1) {
			return uint8(n % uint64(c.Lanes))
		}
	}
}

// Gives reports whether the page gives ids now, or after a wait for the clock.
func (c *Client) Gives() bool {
	_, _, do := c.Look(c.Memory.Load(Number), c.Memory.Load(Horizon), c.Above, c.Now(), 1)
	return do == Take || do == Wait
}

// Until returns for how many nanoseconds a client waits for a number.
func (c *Client) Until(number uint64) int64 {
	return int64(uint64(c.TickOf(number))*uint64(c.Tick)) - c.Ahead - c.Now()
}

// Leave makes every call that takes a number from now on drop it, and returns the last number of a tick above
// which no call has issued one. The mark comes first: a call that does not see it has written Number before.
func (c *Client) Leave() (above uint64) {
	c.Left.Store(true)
	word := c.Memory.Load(Number)
	if word == Closed {
		word = c.Memory.Load(ClosedAt)
		if word == 0 { // the agent has not written it, or never will: nothing is further ahead of the clock
			word = uint64(max(c.Now(), 0)+c.Ahead) / uint64(c.Tick) << c.SeqBits
		}
	}
	return max(c.Last(c.TickOf(word)), c.Above) // this page may be behind one before it
}
