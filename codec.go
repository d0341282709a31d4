package firn

import (
	"errors"
	"fmt"
	"time"
)

var errZeroLayout = errors.New("firn: the zero Layout is not valid")

// Decode says what is in id. It refuses an id that is not positive, and one
// with bits above the layout's: both are another layout's, or no id at all. An
// id of a layout that has ended, or of a time still to come, decodes.
func (l Layout) Decode(id ID) (Parts, error) {
	switch {
	case !l.IsValid():
		return Parts{}, errZeroLayout
	case id <= 0:
		return Parts{}, neverIssued(id)
	case uint64(id)>>l.Bits() != 0:
		return Parts{}, fmt.Errorf("firn: id %d has more than the %d bits of layout %s", id, l.Bits(), l.label())
	}
	var p Parts
	for _, f := range l.fields[:l.count] {
		v := f.Of(id)
		switch f.Name {
		case "time":
			p.Tick = Tick(v)
		case "shard":
			p.Shard = v
		case "seq":
			p.Seq = v
		default:
			p.Worker = p.Worker<<f.Width | v
		}
	}
	p.Time = l.Time(p.Tick)
	return p, nil
}

// Encode is the reverse of [Layout.Decode]. If p.Time is set it decides the
// tick, as the one that holds it, and p.Tick is then 0 or that tick. Whatever
// does not fit in its field is an error, and so are parts that make id 0.
func (l Layout) Encode(p Parts) (ID, error) {
	if !l.IsValid() {
		return 0, errZeroLayout
	}
	tick, err := l.tickOf(p)
	if err != nil {
		return 0, err
	}
	seq, _ := l.Field("seq")
	for _, part := range []struct {
		name  string
		value int64
		max   int64
	}{
		{"shard", p.Shard, l.Shards() - 1},
		{"worker", p.Worker, l.Workers() - 1},
		{"seq", p.Seq, seq.Max()},
	} {
		if part.value < 0 || part.value > part.max {
			return 0, l.misfit(part.name, part.value, part.max)
		}
	}
	var id ID
	left := l.workerBits()
	for _, f := range l.fields[:l.count] {
		var v int64
		switch f.Name {
		case "time":
			v = int64(tick)
		case "shard":
			v = p.Shard
		case "seq":
			v = p.Seq
		default:
			left -= f.Width
			v = p.Worker >> left & f.Max()
		}
		id |= ID(v << f.Shift)
	}
	if id == 0 {
		return 0, fmt.Errorf("firn: these parts make id 0 of layout %s, which is never issued", l.label())
	}
	return id, nil
}

// tickOf returns the tick that p asks for.
func (l Layout) tickOf(p Parts) (Tick, error) {
	if p.Time.IsZero() {
		if p.Tick < 0 || p.Tick > l.Last() {
			return 0, l.misfit("tick", int64(p.Tick), int64(l.Last()))
		}
		return p.Tick, nil
	}
	t := l.Tick(p.Time)
	switch {
	case t < 0:
		return 0, fmt.Errorf("firn: time %s: layout %s begins at %s", instant(p.Time), l.label(), instant(l.Epoch()))
	case t > l.Last():
		return 0, fmt.Errorf("firn: time %s: layout %s ends at %s", instant(p.Time), l.label(), instant(l.End()))
	case p.Tick != 0 && p.Tick != t:
		return 0, fmt.Errorf("firn: tick %d: that of time %s is %d", p.Tick, instant(p.Time), t)
	}
	return t, nil
}

func (l Layout) misfit(name string, value, highest int64) error {
	if highest == 0 && name != "tick" {
		return fmt.Errorf("firn: %s %d: layout %s has no %s", name, value, l.label(), name)
	}
	return fmt.Errorf("firn: %s %d: layout %s has 0 to %d", name, value, l.label(), highest)
}

// Bounds returns the first and the last id that any worker and shard can make
// in the ticks that overlap from <= t < to, for a range scan over a column of
// ids. If from and to are equal it is about the one tick that holds them.
//
// What lies outside the layout's life is cut off; all of it outside is an
// error, and so is a layout that is not [Layout.Ordered]. The first id is never
// 0.
func (l Layout) Bounds(from, to time.Time) (first, last ID, err error) {
	from, to = from.Round(0).UTC(), to.Round(0).UTC() // a monotonic reading would compare by itself
	switch {
	case !l.IsValid():
		return 0, 0, errZeroLayout
	case !l.Ordered():
		return 0, 0, fmt.Errorf("firn: bounds: ids of layout %s do not sort by time", l.label())
	case to.Before(from):
		return 0, 0, fmt.Errorf("firn: bounds: %s is before %s", instant(to), instant(from))
	}
	low, high := l.Tick(from), l.Tick(to)
	if from.Before(to) {
		high = l.Tick(to.Add(-1))
	}
	low, high = max(low, 0), min(high, l.Last())
	shift := l.fields[0].Shift
	below := ID(1)<<shift - 1 // all bits that are not time
	first, last = max(ID(low)<<shift, 1), ID(high)<<shift|below
	if low > high || last < first {
		return 0, 0, fmt.Errorf("firn: bounds: layout %s makes no id from %s to %s: it goes from %s to %s", l.label(),
			instant(from), instant(to), instant(l.Epoch()), instant(l.End()))
	}
	return first, last, nil
}

// instant writes a time as errors and specs have it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
