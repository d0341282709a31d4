package main

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// This file looks for layouts that have what is asked. It is pure: the same
// question at the same instant has the same answer.

// A need is what is asked of a layout.
type need struct {
	rate    float64 // ids per second, of all workers together
	workers int64
	peak    float64 // ids per second that one worker must be able to make; 0: its share of the rate
	years   float64 // from now on
	above   firn.ID // every id made from now on is above it; 0: it need not be
}

// A proposal is a layout that has what was asked.
type proposal struct {
	firn.Layout
	room  float64 // how many times over it has what is asked, where that is least
	spare int     // bits left of 63
}

const (
	// behind is how far a clock may be behind this one: what it makes is above
	// too.
	behind = time.Minute

	widest = 63 // bits of an id
	exact  = 53 // bits of a number in JavaScript
)

// planUnits are the ticks that are tried, in milliseconds.
var planUnits = []int64{1, 10, 100, 1000}

// each is how many ids per second one worker must be able to make.
func (n need) each() float64 { return max(n.peak, n.rate/float64(n.workers)) }

// meets reports whether the layout has what is asked, by what it says of itself.
func (n need) meets(l firn.Layout, now time.Time) bool {
	if l.Check(now) != nil || !l.Ordered() || l.Workers() < n.workers || l.Rate() < n.each() || l.End().Before(n.until(now)) {
		return false
	}
	if n.above == 0 {
		return true
	}
	from := now.Add(-behind)
	first, _, err := l.Bounds(from, from)
	return err == nil && first > n.above
}

// secondsOf are the seconds of so many years, of the Gregorian mean.
func secondsOf(years float64) float64 { return years * 365.2425 * 24 * 60 * 60 }

// until is when the layout may end. A time.Duration would not do: it ends after
// 292 years.
func (n need) until(now time.Time) time.Time {
	return time.Unix(now.Unix()+int64(math.Ceil(secondsOf(n.years)))+1, 0).UTC()
}

// room is how many times over the layout has what is asked, where that is least.
func (n need) room(l firn.Layout, now time.Time) float64 {
	return slices.Min(n.margins(l, now))
}

func (n need) margins(l firn.Layout, now time.Time) []float64 {
	return []float64{
		l.Rate() / n.each(),
		float64(l.Workers()) / float64(n.workers),
		yearsBetween(now, l.End()) / n.years,
	}
}

// plan returns the layouts that have what is asked: those known by name, and for
// each tick the one with the fewest bits, the roomiest whose ids JavaScript can
// read as numbers, and the roomiest of all.
func (n need) plan(now time.Time) []proposal {
	var all []proposal
	add := func(l firn.Layout) {
		if n.meets(l, now) && !slices.ContainsFunc(all, func(p proposal) bool { return p.Layout == l }) {
			all = append(all, proposal{Layout: l, room: n.room(l, now), spare: max(widest-l.Bits(), 0)})
		}
	}
	for _, l := range firn.Presets() {
		add(l)
	}
	for _, unit := range planUnits {
		least, ok := n.fewest(unit, now)
		if !ok {
			continue
		}
		for _, total := range []int{least.bits(), exact, widest} {
			if total < least.bits() {
				continue
			}
			if l, ok := n.roomiest(unit, total, now); ok {
				add(l)
			}
		}
	}
	return all
}

// A split is how the bits of an id may divide.
type split struct {
	time, worker, seq int
	epoch             int64 // Unix milliseconds
}

func (s split) bits() int { return s.time + s.worker + s.seq }

// layout is the split with ticks of so many milliseconds. It is not ok where no
// layout is like that.
func (s split) layout(unit int64) (firn.Layout, bool) {
	tick := fmt.Sprintf("%dms", unit)
	if unit%1000 == 0 {
		tick = fmt.Sprintf("%ds", unit/1000)
	}
	fields := []string{fmt.Sprintf("time:%d@%s", s.time, tick)}
	if s.worker > 0 {
		fields = append(fields, fmt.Sprintf("worker:%d", s.worker))
	}
	if s.seq > 0 {
		fields = append(fields, fmt.Sprintf("seq:%d", s.seq))
	}
	epoch := time.UnixMilli(s.epoch).UTC().Format(time.RFC3339)
	l, err := firn.ParseLayout(strings.Join(fields, ",") + ";epoch=" + epoch)
	return l, err == nil
}

// least returns the fewest bits of a worker and of a sequence that do.
func (n need) least(unit int64) (worker, seq int) {
	seconds := (time.Duration(unit) * time.Millisecond).Seconds()
	for math.Ldexp(1, seq)/seconds < n.each() {
		seq++
	}
	return bits.Len64(uint64(n.workers - 1)), seq
}

// fit returns the epoch that a layout needs with so many bits below the time,
// and how many bits of time it then takes. It is not ok if there is no such
// epoch: there is none before 1970.
func (n need) fit(unit int64, below int, now time.Time) (epoch int64, clock int, ok bool) {
	from := now.Add(-behind)
	epoch = time.Date(from.UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	if n.above > 0 {
		// The tick that holds from has to be above the one in the id.
		ticks := int64(n.above)>>below + 1
		if ticks > from.UnixMilli()/unit {
			return 0, 0, false
		}
		const day = 24 * 60 * 60 * 1000
		if latest := from.UnixMilli() - ticks*unit; latest < epoch {
			epoch = latest - latest%day
		}
	}
	ticks := uint64(n.until(now).UnixMilli()-epoch+unit-1) / uint64(unit)
	return epoch, max(bits.Len64(ticks-1), 1), true
}

// fewest returns the split of the fewest bits, at most 63.
func (n need) fewest(unit int64, now time.Time) (best split, ok bool) {
	worker, seq := n.least(unit)
	for below := worker + seq; below < widest; below++ {
		epoch, clock, fits := n.fit(unit, below, now)
		if !fits || clock+below > widest {
			continue
		}
		s := split{time: clock, worker: worker, seq: below - worker, epoch: epoch}
		if !ok || s.bits() < best.bits() {
			best, ok = s, true
		}
	}
	return best, ok
}

// roomiest returns the layout of so many bits whose least margin is greatest, and
// of those the one whose next is.
func (n need) roomiest(unit int64, total int, now time.Time) (best firn.Layout, ok bool) {
	worker, seq := n.least(unit)
	var most []float64
	for below := worker + seq; below < total; below++ {
		epoch, clock, fits := n.fit(unit, below, now)
		if !fits || clock+below > total {
			continue
		}
		for w := worker; w <= below-seq; w++ {
			l, valid := split{total - below, w, below - w, epoch}.layout(unit)
			if !valid || !n.meets(l, now) {
				continue
			}
			margins := n.margins(l, now)
			slices.Sort(margins)
			if !ok || slices.Compare(margins, most) > 0 {
				best, most, ok = l, margins, true
			}
		}
	}
	return best, ok
}

// possible reports whether any layout has what is asked.
func (n need) possible(now time.Time) bool {
	return slices.ContainsFunc(planUnits, func(unit int64) bool {
		_, ok := n.fewest(unit, now)
		return ok
	})
}

// relaxed returns what would do where nothing does: for each requirement the
// most that can be asked while the others stay, as a flag.
func (n need) relaxed(now time.Time) []string {
	var flags []string
	most := func(flag string, from float64, ask func(*need, float64)) {
		low, high := 0.0, math.Ceil(from)
		for high-low > 1 {
			middle := math.Floor((low + high) / 2)
			m := n
			ask(&m, middle)
			if m.possible(now) {
				low = middle
			} else {
				high = middle
			}
		}
		if low > 0 {
			flags = append(flags, fmt.Sprintf("%s %.0f", flag, low))
		}
	}
	if n.peak > n.rate/float64(n.workers) {
		most("--worker-rate", n.peak, func(m *need, v float64) { m.peak = v })
	} else {
		most("--rate", n.rate, func(m *need, v float64) { m.rate = v })
	}
	// Fewer workers have to make more ids each, so this is no scale to halve.
	for w := int64(1) << 62; w > 0; w >>= 1 {
		m := n
		m.workers = w
		if w < n.workers && m.possible(now) {
			flags = append(flags, fmt.Sprintf("--workers %d", w))
			break
		}
	}
	most("--years", n.years, func(m *need, v float64) { m.years = v })
	return flags
}

// roomy is with how much room a finer tick counts for more than further room.
const roomy = 2

// planOrders are the orders of proposals by name.
var planOrders = map[string]func(a, b proposal) int{
	"best": func(a, b proposal) int {
		return cmp.Or(
			first(a.Layout == firn.Default, b.Layout == firn.Default),
			first(a.room >= roomy, b.room >= roomy),
			cmp.Compare(a.Unit(), b.Unit()))
	},
	"room":    func(a, b proposal) int { return cmp.Compare(b.room, a.room) },
	"bits":    func(a, b proposal) int { return cmp.Compare(a.Bits(), b.Bits()) },
	"tick":    func(a, b proposal) int { return cmp.Compare(a.Unit(), b.Unit()) },
	"years":   func(a, b proposal) int { return b.End().Compare(a.End()) },
	"rate":    func(a, b proposal) int { return cmp.Compare(b.Rate(), a.Rate()) },
	"workers": func(a, b proposal) int { return cmp.Compare(b.Workers(), a.Workers()) },
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// sortProposals puts the first first. Where an order leaves two alike, more room,
// a finer tick and fewer bits decide.
func sortProposals(all []proposal, order string) {
	slices.SortStableFunc(all, func(a, b proposal) int {
		return cmp.Or(planOrders[order](a, b), planOrders["room"](a, b), planOrders["tick"](a, b), planOrders["bits"](a, b))
	})
}
