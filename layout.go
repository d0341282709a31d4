package firn

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"time"
)

// A Tick counts a layout's units of time since its epoch.
type Tick int64

// A Layout says how the bits of an id divide, when its epoch is and how long a
// tick lasts. It is a value: layouts are equal with == if they read every id
// alike, and all methods may be called from many goroutines at once.
//
// Make one with [Default], [ParseLayout] or [MustLayout]. The zero Layout is not valid; methods
// that return an error return one for it.
type Layout struct {
	epoch  int64 // nanoseconds since 1970
	unit   int64 // nanoseconds in a tick, whole microseconds
	count  int
	fields [maxFields]Field // high bits first; zero from count on, so that == holds
}

// A Field is one part of an id. The names "time", "shard" and "seq" have their
// meaning; a field of any other name is part of the worker.
type Field struct {
	Name  string
	Width int // bits
	Shift int // bits below it
}

// Of returns the field's value in id.
func (f Field) Of(id ID) int64 { return int64(id) >> f.Shift & f.Max() }

// Max returns the highest value that fits in the field's width. In a layout of
// 64 bits no id reaches that of the time: see [Layout.Last].
func (f Field) Max() int64 { return int64(uint64(1)<<f.Width - 1) }

// IsWorker reports whether the field is one of those that make up the worker.
func (f Field) IsWorker() bool {
	return f.Name != "" && f.Name != "time" && f.Name != "shard" && f.Name != "seq"
}

// Parts are the values of the fields of an id.
type Parts struct {
	Time   time.Time // when its tick begins, UTC
	Tick   Tick
	Shard  int64
	Worker int64 // all worker fields read as one number, high bits first: what a lease hands out
	Seq    int64
}

// IsValid reports whether l is a layout and not the zero Layout.
func (l Layout) IsValid() bool { return l.count > 0 }

// Fields ranges over the fields, high bits first.
func (l Layout) Fields() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for _, f := range l.fields[:l.count] {
			if !yield(f) {
				return
			}
		}
	}
}

// Field returns the field of that name.
func (l Layout) Field(name string) (Field, bool) {
	for _, f := range l.fields[:l.count] {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Bits returns how many bits the fields have together, at most 64. A layout of
// 64 bits counts time in the sign bit too, and ends where it would be set.
func (l Layout) Bits() int { return l.fields[0].Shift + l.fields[0].Width }

// Ordered reports whether the time leads, so that ids sort by time.
func (l Layout) Ordered() bool { return l.fields[0].Name == "time" }

// Workers returns how many workers there can be: 0 to Workers()-1. It is 1
// where the layout has no worker field.
func (l Layout) Workers() int64 { return 1 << l.workerBits() }

// Shards returns how many shards there can be: 0 to Shards()-1. It is 1 where
// the layout has no shard field.
func (l Layout) Shards() int64 {
	f, _ := l.Field("shard")
	return 1 << f.Width
}

// Rate returns how many ids per second one worker (of one shard) can make at
// most.
func (l Layout) Rate() float64 {
	f, _ := l.Field("seq")
	return math.Ldexp(1, f.Width) / l.Unit().Seconds()
}

// Unit returns how long a tick lasts, 1 µs to 1 h.
func (l Layout) Unit() time.Duration { return time.Duration(l.unit) }

// Epoch returns the instant at which tick 0 begins, UTC.
func (l Layout) Epoch() time.Time { return time.Unix(0, l.epoch).UTC() }

// Last returns the highest tick that an id can carry.
func (l Layout) Last() Tick {
	return Tick(uint64(1)<<l.lifeBits() - 1)
}

// lifeBits returns how many bits of time an id can use.
func (l Layout) lifeBits() int {
	f, _ := l.Field("time")
	if l.Bits() == 64 {
		return f.Width - 1
	}
	return f.Width
}

// End returns the first instant that no id can carry any more, UTC: the end of
// tick Last. It can be later than the year 9999, which time.Time has no JSON
// for.
func (l Layout) End() time.Time { return l.after(uint64(l.Last())+1, 1) }

// Safe53 returns the first instant at which an id can be above 2^53-1, where
// JavaScript begins to round numbers; End if none ever is.
func (l Layout) Safe53() time.Time {
	const exact = 53
	switch {
	case l.Bits() <= exact:
		return l.End()
	case !l.Ordered() || l.fields[0].Shift > exact:
		return l.Epoch() // what is not time reaches above 2^53-1
	}
	return l.after(uint64(1)<<(exact-l.fields[0].Shift), 1)
}

// Time returns the instant at which a tick begins, UTC. The tick need not be
// one that an id can carry; what is more than 2^62 seconds from the epoch is
// brought back to that.
func (l Layout) Time(t Tick) time.Time {
	if t < 0 {
		return l.after(-uint64(t), -1)
	}
	return l.after(uint64(t), 1)
}

// after returns the instant n ticks after the epoch, or before it if sign is -1.
// A [time.Duration] would not do: it ends after 292 years.
func (l Layout) after(n uint64, sign int64) time.Time {
	const farthest = 1 << 62
	sec, ns := uint64(farthest), uint64(0)
	if hi, lo := bits.Mul64(n, uint64(l.unit)); hi < 1e9 {
		sec, ns = bits.Div64(hi, lo, 1e9)
	}
	if sec >= farthest {
		sec, ns = farthest, 0
	}
	return time.Unix(l.epoch/1e9+sign*int64(sec), l.epoch%1e9+sign*int64(ns)).UTC()
}

// Tick returns the tick that holds t: negative before the epoch. The tick need
// not be one that an id can carry; where it does not fit in 64 bits it is the
// lowest or highest number that does.
func (l Layout) Tick(t time.Time) Tick {
	sec, ns := t.Unix(), int64(t.Nanosecond())
	epochSec, epochNs := l.epoch/1e9, l.epoch%1e9
	if sec > epochSec || sec == epochSec && ns >= epochNs {
		n, _ := l.ticks(uint64(sec)-uint64(epochSec), ns-epochNs)
		return Tick(min(n, math.MaxInt64))
	}
	n, rest := l.ticks(uint64(epochSec)-uint64(sec), epochNs-ns)
	if n > math.MaxInt64 {
		return math.MinInt64
	}
	if rest {
		n++ // down, not towards the epoch
	}
	return -Tick(n)
}

// ticks divides a span into ticks and says whether something is left. The span
// is not negative; its ns alone may be.
func (l Layout) ticks(sec uint64, ns int64) (n uint64, rest bool) {
	if ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	hi, lo := bits.Mul64(sec, 1e9)
	lo, carry := bits.Add64(lo, uint64(ns), 0)
	hi += carry
	if hi >= uint64(l.unit) {
		return math.MaxUint64, false
	}
	n, r := bits.Div64(hi, lo, uint64(l.unit))
	return n, r > 0
}

// Check returns nil if ids can be issued now: an [*EndError] once the layout
// has ended, and an [*EpochError] before its epoch.
func (l Layout) Check(now time.Time) error {
	switch {
	case !l.IsValid():
		return errZeroLayout
	case now.Before(l.Epoch()):
		return &EpochError{Layout: l, Now: now}
	case !now.Before(l.End()):
		return &EndError{Layout: l, End: l.End()}
	}
	return nil
}

func (l Layout) workerBits() int {
	n := 0
	for _, f := range l.fields[:l.count] {
		if f.IsWorker() {
			n += f.Width
		}
	}
	return n
}

// label is what an error calls the layout.
func (l Layout) label() string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}

// An EndError says that a layout can make no more ids: its time ran out.
type EndError struct {
	Layout Layout
	End    time.Time // from when on
}

func (e *EndError) Error() string {
	return fmt.Sprintf("firn: layout %s ended on %s: no id can carry a time from %s on",
		e.Layout.label(), e.End.UTC().Format(time.DateOnly), instant(e.End))
}

// Retryable is false; see firn.Retryable.
func (*EndError) Retryable() bool { return false }

// An EpochError says that a layout cannot make ids yet, or that the clock is
// wrong.
type EpochError struct {
	Layout Layout
	Now    time.Time // what the clock said
}

func (e *EpochError) Error() string {
	return fmt.Sprintf("firn: layout %s begins at %s, and the clock says %s",
		e.Layout.label(), instant(e.Layout.Epoch()), instant(e.Now))
}

// Retryable is false; see firn.Retryable.
func (*EpochError) Retryable() bool { return false }
