package term

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
)

// This file has the life of a pool's record: how it is created, how its range changes, and
// which pools may exist beside each other.
//
// A range is given to a pool in two writes. The first reserves it; then the other pools are
// read; the second makes it usable. Of two pools that want one range at once, the one
// whose reservation was acknowledged later reads the other's. It gives way to a pool that
// has the range, and makes void a reservation of a pool that is being created: that
// one's second write then fails. So no two pools get one range, unless told to.

// A Range is of worker numbers, First to Last. The zero Range has worker 0.
type Range struct{ First, Last int64 }

// Has reports whether n is in the range.
func (r Range) Has(n int64) bool { return r.First <= n && n <= r.Last }

// Count is how many workers there are.
func (r Range) Count() int64 { return r.Last - r.First + 1 }

// Overlaps reports whether a worker is in both ranges.
func (r Range) Overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

// Span is the smallest range that has both.
func (r Range) Span(o Range) Range { return Range{min(r.First, o.First), max(r.Last, o.Last)} }

// Common is the range of the workers that are in both; ok says whether there are any.
func (r Range) Common(o Range) (c Range, ok bool) {
	return Range{max(r.First, o.First), min(r.Last, o.Last)}, r.Overlaps(o)
}

// String is the range as in a pool's record: "0-1023".
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// ParseRange reads a range such as 0-1023, of workers that the layout has.
func ParseRange(s string, l firn.Layout) (r Range, err error) {
	from, to, _ := strings.Cut(s, "-")
	r.First, _ = strconv.ParseInt(from, 10, 64)
	r.Last, _ = strconv.ParseInt(to, 10, 64)
	switch {
	case s != r.String() || r.First < 0 || r.Last < r.First:
		return Range{}, fmt.Errorf("workers %q are not a range such as 0-1023", s)
	case r.Last >= l.Workers():
		return Range{}, fmt.Errorf("workers %q: the layout has 0-%d", s, l.Workers()-1)
	}
	return r, nil
}

// NewPool is the first record of a pool: its range is reserved, and nothing can be leased.
// limit is the longest outage budget of any member, 0 if nobody said one.
func NewPool(id string, l firn.Layout, workers Range, limit time.Duration) Pool {
	return Pool{V: record.Format, ID: id, Layout: l.String(), Reserved: workers.String(), Limit: limit.Milliseconds()}
}

// Created reports whether the pool is there, not only about to be.
func (p Pool) Created() bool { return p.Workers != "" }

// Range is the range that members lease from.
func (p Pool) Range(l firn.Layout) (Range, error) { return ParseRange(p.Workers, l) }

// Claim is the range that no other pool may share: the reserved one, or else the one that
// members lease from. ok is false where the pool claims nothing.
func (p Pool) Claim(l firn.Layout) (r Range, ok bool, err error) {
	text := p.Reserved
	if text == "" {
		text = p.Workers
	}
	if text == "" {
		return Range{}, false, nil
	}
	r, err = ParseRange(text, l)
	return r, err == nil, err
}

// Reserve returns the record that reserves the workers of both ranges, and lets members
// lease those only that are in usable.
func (p Pool) Reserve(usable, reserved Range) Pool {
	p.Workers, p.Reserved = usable.String(), reserved.String()
	return p
}

// Use returns the record by which members lease from a range, and nothing is reserved.
// The record still tells which workers the pool had: another pool that gets them must not
// make ids of the past with them.
func (p Pool) Use(workers Range, l firn.Layout) (Pool, error) {
	ever, err := p.Ever(l)
	if err != nil {
		return p, err
	}
	p.Workers, p.Reserved = workers.String(), ""
	if ever = ever.Span(workers); ever != workers {
		p.Had = ever.String()
	}
	return p, nil
}

// Ever is the range of all workers that the pool has or had. A pool that is being created
// has those that it reserved.
func (p Pool) Ever(l firn.Layout) (ever Range, err error) {
	first := true
	for _, text := range []string{p.Workers, p.Reserved, p.Had} {
		if text == "" {
			continue
		}
		r, err := ParseRange(text, l)
		if err != nil {
			return ever, err
		}
		if !first {
			r = r.Span(ever)
		}
		ever, first = r, false
	}
	return ever, nil
}

// Void returns the record of a pool that is being created without what it reserved.
func (p Pool) Void() Pool {
	p.Reserved = ""
	return p
}

// Above returns the record of a new pool whose ids start above floor, made in a store of
// that identity.
func (p Pool) Above(floor firn.Tick, identity string) Pool {
	p.Floor, p.Store = max(p.Floor, floor), identity
	return p
}

// Repeats reports whether the pool may repeat the ids of another one.
func (p Pool) Repeats(other string) bool { return slices.Contains(strings.Fields(p.MayRepeat), other) }

// CouldRepeat reports whether workers of two layouts and ranges could make equal ids. They
// cannot only where both layouts have the worker in the same bits and no worker is in both
// ranges. Time does not tell ids apart: another epoch makes the same ids at another time.
func CouldRepeat(a firn.Layout, ra Range, b firn.Layout, rb Range) bool {
	return !SameWorkerBits(a, b) || ra.Overlaps(rb)
}

// SameWorkerBits reports whether two layouts have the worker in the same bits of an id.
func SameWorkerBits(a, b firn.Layout) bool { return slices.Equal(workerBits(a), workerBits(b)) }

// workerBits are the places in an id of a worker's bits, high ones first.
func workerBits(l firn.Layout) (bits []int) {
	for f := range l.Fields() {
		if !f.IsWorker() {
			continue
		}
		for i := f.Width - 1; i >= 0; i-- {
			bits = append(bits, f.Shift+i)
		}
	}
	return bits
}

// Elsewhere reports whether the record was made in another store than the one that says
// this of itself.
func (p Pool) Elsewhere(identity string) bool {
	return p.Store != "" && identity != "" && p.Store != identity
}
