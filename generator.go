package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrClosed says that a source of ids was closed and gives no more.
	ErrClosed = errors.New("firn: closed")
	// ErrBusy says that no id can be given without waiting for the clock.
	ErrBusy = errors.New("firn: no id without waiting")
)

// DefaultBorrow and MaxBorrow are the default and the maximum of [GeneratorOptions.Borrow].
const (
	DefaultBorrow = 10 * time.Millisecond
	MaxBorrow     = time.Second
)

// GeneratorOptions are the options of a [Generator]. Nil, or a zero field, means the default.
type GeneratorOptions struct {
	// Shard is the value of the layout's shard field.
	Shard int64
	// Borrow is how far ids may run ahead of the clock when the sequence of a tick is used up,
	// at most MaxBorrow. It is rounded down to whole ticks. Zero means DefaultBorrow; a
	// negative one means that ids never run ahead.
	Borrow time.Duration
	// Start is the time now, for a caller that has a better clock than the system's. The
	// generator counts from there. Zero means the system's time.
	Start time.Time
	// Now replaces the clock. Nil means that the generator reads the wall clock once, and the
	// monotonic clock from then on, so that a step of the wall clock changes nothing.
	Now func() time.Time
}

// A Generator issues the ids of one grant and no others. Its ids are strictly increasing in a
// layout that is [Layout.Ordered]; in other layouts the pair of tick and sequence is. A
// Generator is a [Source], and safe for concurrent use. Make one with [NewGenerator].
//
// Most programs have their generators inside a lease. Extend, SetClock and Close, and what
// Borrowed and Waits return, are for the holder of the grant, which is the lease there.
type Generator struct {
	_ [64]byte // the word has a cache line of its own

	// word is the last number taken: tick<<seqBits | sequence. It is raised by
	// one atomic add per id, and lowered only by whoever holds the last number,
	// to give it back. So nobody else can take a number that somebody holds.
	//
	// Tick and sequence in two words cannot be made safe: a goroutine held
	// between them pairs an old sequence with a new tick.
	word atomic.Uint64

	_ [56]byte

	// Read by every call, written about once a tick.
	edge  atomic.Int64  // clock reading at which the word's tick is over
	limit atomic.Uint64 // highest number that grant and clock allow; 0: none

	start               time.Time // what clock readings count from
	fixed               uint64    // shard and worker, in place
	seqBits             uint8
	timeShift, seqShift uint8
	now                 func() time.Time

	even   uint64 // bits of the sequence that run on from tick to tick
	borrow int64  // in ticks
	tick   int64  // in nanoseconds
	last   uint64 // tick of the layout
	layout Layout

	_ [64]byte

	mu     sync.Mutex    // of all that is not an id within a tick; guards the rest
	offset int64         // nanoseconds from a clock reading to the layout's time
	pace   uint64        // highest number the clock allows
	top    uint64        // highest number the grant allows
	spare  []uint64      // numbers above the limit that were given back while they were not the last, ascending
	moved  chan struct{} // closed when the clock was set, and by Close
	waits  int64         // times that a call has slept for the clock
	closed bool
	issued uint64 // once closed: a number above which none was issued
}

// NewGenerator returns the generator of a grant. Its first id has a tick above grant.Base, and
// is not given before the clock allows it. Errors: [*EndError], the layout has ended by the
// generator's clock; [*EpochError], the layout begins later.
func NewGenerator(l Layout, grant Grant, opts *GeneratorOptions) (*Generator, error) {
	if opts == nil {
		opts = &GeneratorOptions{}
	}
	borrow := opts.Borrow
	if borrow == 0 {
		borrow = DefaultBorrow
	}
	g := &Generator{layout: l, now: opts.Now, tick: int64(l.Unit()), last: uint64(l.Last()), moved: make(chan struct{})}
	g.start = time.Now()
	if g.now != nil {
		g.start = g.now()
	}
	start := g.start
	if !opts.Start.IsZero() {
		start = opts.Start
	}
	if err := l.Check(start); err != nil {
		return nil, err
	}
	switch {
	case borrow > MaxBorrow:
		return nil, fmt.Errorf("firn: borrow %s is above %s", borrow, MaxBorrow)
	case grant.Worker < 0 || grant.Worker >= l.Workers():
		return nil, fmt.Errorf("firn: worker %d: layout %s has 0 to %d", grant.Worker, l, l.Workers()-1)
	case opts.Shard < 0 || opts.Shard >= l.Shards():
		return nil, fmt.Errorf("firn: shard %d: layout %s has 0 to %d", opts.Shard, l, l.Shards()-1)
	case grant.Base < 0 || grant.Horizon < grant.Base || grant.Horizon > l.Last():
		return nil, fmt.Errorf("firn: grant (%d, %d]: layout %s has ticks 1 to %d", grant.Base, grant.Horizon, l, l.Last())
	}
	g.borrow = max(int64(borrow), 0) / g.tick
	g.offset = int64(start.Sub(l.Epoch()))
	g.place(grant.Worker, opts.Shard)
	g.pace = g.lastOf(grant.Base)
	g.top = g.lastOf(grant.Horizon)
	g.limit.Store(g.pace)
	g.word.Store(g.pace + g.first(grant.Base)&g.even)
	g.edge.Store(math.MinInt64) // the first call turns
	return g, nil
}

// first is where the sequence begins: anywhere, so that the ids of many short lives
// are even too. With somebody's own clock that follows from its reading, so that a
// simulation is the same every time.
func (g *Generator) first(base Tick) uint64 {
	if g.now == nil {
		return rand.Uint64()
	}
	return rand.New(rand.NewPCG(uint64(g.start.UnixNano()), uint64(base))).Uint64()
}

// place works out what does not change from id to id.
func (g *Generator) place(worker, shard int64) {
	seqWidth := 0
	workerBits := 0
	for f := range g.layout.Fields() {
		if f.IsWorker() {
			workerBits += f.Width
		}
	}
	for f := range g.layout.Fields() {
		switch {
		case f.Name == "time":
			g.timeShift = uint8(f.Shift)
		case f.Name == "seq":
			seqWidth, g.seqShift = f.Width, uint8(f.Shift)
		case f.Name == "shard":
			g.fixed |= uint64(shard) << f.Shift
		default:
			workerBits -= f.Width
			g.fixed |= uint64(worker) >> workerBits & (1<<f.Width - 1) << f.Shift
		}
	}
	g.seqBits = uint8(seqWidth)
	// The low bits of the sequence run on from tick to tick, so that id % 2^n
	// is even at any rate: starting each tick at zero is the trap of everyone
	// who shards by modulo. A tick that starts late borrows what it lacks from
	// the next; where nothing may be borrowed it starts in its first quarter.
	even := seqWidth
	if g.borrow == 0 {
		even = max(seqWidth-2, 0)
	}
	g.even = 1<<even - 1
}

// Next returns the next id. If the sequence of a tick is used up, it waits for the next tick
// or until ctx is done, which it checks at least every 20 ms. Errors: [*HorizonError], the
// grant is used up; [*EndError], the layout has ended; [ErrClosed]; ctx's.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	if int64(time.Since(g.start)) >= g.edge.Load() {
		if err := g.turn(); err != nil {
			return 0, err
		}
	}
	// The number is taken first and compared after, on its own value. No clock
	// is read and nothing else is asked between the comparison and the use: so
	// the horizon and Close hold however long this goroutine pauses here.
	w := g.word.Add(1)
	if w > g.limit.Load() {
		return g.wait(ctx, w)
	}
	return g.id(w), nil
}

// Try is Next without waiting: it returns [ErrBusy] where Next would wait.
func (g *Generator) Try() (ID, error) {
	w, k, err := g.take(1)
	if err != nil {
		return 0, err
	}
	if k == 0 {
		return 0, ErrBusy
	}
	return g.id(w), nil
}

// TryAppend appends up to n ids to dst without waiting: fewer, and no error,
// where Append would wait for the clock.
func (g *Generator) TryAppend(dst []ID, n int) ([]ID, error) {
	for n > 0 {
		w, k, err := g.take(n)
		if k == 0 || err != nil {
			return dst, err
		}
		dst = g.append(dst, w, k)
		n -= k
	}
	return dst, nil
}

// Append appends n ids to dst, taking as many at once as clock and grant allow,
// and waits as Next does. On an error it returns dst with those it got.
func (g *Generator) Append(ctx context.Context, dst []ID, n int) ([]ID, error) {
	for n > 0 {
		w, k, err := g.take(n)
		if err != nil {
			return dst, err
		}
		if k == 0 {
			id, err := g.Next(ctx)
			if err != nil {
				return dst, err
			}
			dst = append(dst, id)
			n--
			continue
		}
		dst = g.append(dst, w, k)
		n -= k
	}
	return dst, nil
}

// append appends the ids of k numbers from w on. Within a tick they lie a step
// apart.
func (g *Generator) append(dst []ID, w uint64, k int) []ID {
	dst = slices.Grow(dst, k)
	step := ID(1) << g.seqShift
	for k > 0 {
		n := int(min(uint64(k), 1<<g.seqBits-w&(1<<g.seqBits-1))) // what is left of the tick
		run := dst[len(dst) : len(dst)+n]
		id := g.id(w)
		for i := range run {
			run[i] = id
			id += step
		}
		dst = dst[:len(dst)+n]
		w += uint64(n)
		k -= n
	}
	return dst
}

// Extend raises the horizon. Call it only with a horizon that the store has
// acknowledged. It never lowers one, and does nothing after Close.
func (g *Generator) Extend(horizon Tick) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.top = max(g.top, g.lastOf(min(max(horizon, 0), Tick(g.last))))
		g.allow()
	}
}

// SetClock makes it now. Ids go on increasing: where the clock was set back,
// they hold their tick and count on, at most Borrow ahead of where it was.
func (g *Generator) SetClock(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.offset = int64(now.Add(-time.Duration(g.clock())).Sub(g.layout.Epoch()))
	g.edge.Store(math.MinInt64)
	close(g.moved)
	g.moved = make(chan struct{})
}

// Close ends the generator for good and returns a tick above which it has
// issued nothing and never will. Calls that wait return ErrClosed.
func (g *Generator) Close() Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		limit := g.limit.Swap(0)
		// A number taken from here on is compared with limit 0, and nothing
		// above the limit of before was issued.
		g.issued = min(g.word.Load(), limit)
		g.edge.Store(math.MinInt64)
		close(g.moved)
	}
	return Tick(g.issued >> g.seqBits)
}

// Waits is how many times a call has slept so far until the clock allowed an id.
func (g *Generator) Waits() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits
}

// Borrowed is how far the last id lies ahead of the clock, in whole ticks; 0 where
// it does not.
func (g *Generator) Borrowed() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := min(g.word.Load(), g.limit.Load()) >> g.seqBits
	now := uint64(max(g.clock()+g.offset, 0)) / uint64(g.tick)
	if g.closed || last <= now {
		return 0
	}
	return time.Duration(last-now) * time.Duration(g.tick)
}

// turn raises the limit and the word to the clock's tick.
func (g *Generator) turn() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	t := g.advance()
	floor := t << g.seqBits
	for {
		old := g.word.Load()
		if max(floor, old+1) > g.top {
			return g.spent()
		}
		if old+1 >= floor || g.word.CompareAndSwap(old, floor+(old+1)&g.even-1) {
			break
		}
	}
	if g.now == nil { // somebody's own clock is read on every call
		g.edge.Store(int64(t+1)*g.tick - g.offset)
	}
	return nil
}

// advance raises the limit to what the clock allows, and returns its tick, or
// the one after the layout's last. It is the one place where time is divided,
// once a tick.
func (g *Generator) advance() uint64 {
	t := min(uint64(max(g.clock()+g.offset, 0))/uint64(g.tick), g.last+1)
	g.pace = max(g.pace, g.lastOf(Tick(min(t+uint64(g.borrow), g.last))))
	g.allow()
	return t
}

// allow makes the limit what clock and grant allow.
func (g *Generator) allow() {
	limit := min(g.pace, g.top)
	g.limit.Store(limit)
	for len(g.spare) > 0 && g.spare[0] <= limit {
		g.spare = g.spare[1:] // higher ones may be out
	}
}

// spent says why nothing above g.top may be issued.
func (g *Generator) spent() error {
	t := Tick(g.top >> g.seqBits)
	if t == Tick(g.last) {
		return &EndError{Layout: g.layout, End: g.layout.End()}
	}
	return &HorizonError{Horizon: g.layout.Time(t + 1).Add(-1)}
}

// take reserves up to n consecutive numbers without waiting; k is 0 where the
// clock allows none.
func (g *Generator) take(n int) (first uint64, k int, err error) {
	for {
		if int64(time.Since(g.start)) >= g.edge.Load() {
			if err := g.turn(); err != nil {
				return 0, 0, err
			}
		}
		old := g.word.Load()
		last := min(old+uint64(n), g.limit.Load())
		if last <= old {
			return 0, 0, g.turn() // nil: it is the clock
		}
		if g.word.CompareAndSwap(old, last) && last <= g.limit.Load() {
			return old + 1, int(last - old), nil
		}
	}
}

// wait holds the number w, or a lower one that was given back, until clock and
// grant allow it. A number that is refused is given back, so that asking in
// vain uses up nothing.
func (g *Generator) wait(ctx context.Context, w uint64) (ID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed {
		g.advance()
		if len(g.spare) > 0 && g.spare[0] < w {
			lower := g.spare[0]
			g.spare = g.spare[1:]
			g.giveBack(w)
			w = lower
		}
		err := ctx.Err()
		switch {
		case w <= g.limit.Load():
			return g.id(w), nil
		case w > g.top:
			err = g.spent()
		}
		if err != nil {
			g.giveBack(w)
			return 0, err
		}
		g.waits++
		g.sleep(ctx, w)
	}
	return 0, ErrClosed
}

// giveBack makes w, which is above the limit, free again.
func (g *Generator) giveBack(w uint64) {
	i, _ := slices.BinarySearch(g.spare, w)
	g.spare = slices.Insert(g.spare, i, w)
	for n := len(g.spare); n > 0 && g.word.CompareAndSwap(g.spare[n-1], g.spare[n-1]-1); n-- {
		g.spare = g.spare[:n-1]
	}
}

// nap is how long a wait may go without looking at ctx and at Close: short
// waits, which are one a tick at the layout's ceiling, then cost no timer.
const nap = 20 * time.Millisecond

// sleep returns when the clock may allow w, and earlier if the clock was set,
// ctx is done or the generator closed. Meanwhile it lets go of g.mu.
func (g *Generator) sleep(ctx context.Context, w uint64) {
	now := g.layout.Epoch().Add(time.Duration(g.clock() + g.offset))
	d := g.layout.Time(Tick(w>>g.seqBits) - Tick(g.borrow)).Sub(now)
	moved := g.moved
	g.mu.Unlock()
	defer g.mu.Lock()
	if d <= nap {
		time.Sleep(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-moved:
	case <-ctx.Done():
	}
}

// clock is a reading in nanoseconds since start.
func (g *Generator) clock() int64 {
	if g.now == nil {
		return int64(time.Since(g.start))
	}
	return int64(g.now().Sub(g.start))
}

// lastOf is the last number of a tick.
func (g *Generator) lastOf(t Tick) uint64 { return uint64(t+1)<<g.seqBits - 1 }

// id puts a number, the worker and the shard in their places.
func (g *Generator) id(w uint64) ID {
	return ID(w>>(g.seqBits&63)<<(g.timeShift&63) | g.fixed | w&(1<<(g.seqBits&63)-1)<<(g.seqShift&63))
}
