package plan

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

const (
	// behind is how far a clock may be behind this one: what it makes is above
	// too.
	behind = time.Minute

	secondsPerYear = 365.2425 * 24 * 60 * 60 // the Gregorian mean

	widest = 63 // bits of an id
	exact  = 53 // bits of a number in JavaScript
)

// units are the ticks that are tried, in milliseconds.
var units = []int64{1, 10, 100, 1000}

// each is how many ids per second one worker must be able to make.
func (n Need) each() float64 { return max(n.WorkerRate, n.Rate/float64(n.Workers)) }

// meets reports whether the layout has what is asked, by what it says of itself.
func (n Need) meets(l firn.Layout, now time.Time) bool {
	if l.Check(now) != nil || !l.Ordered() || l.Workers() < n.Workers || l.Rate() < n.each() || l.End().Before(n.until(now)) {
		return false
	}
	if n.Above == 0 {
		return true
	}
	from := now.Add(-behind)
	first, _, err := l.Bounds(from, from)
	return err == nil && first > n.Above
}

// until is when the layout may end. A time.Duration would not do: it ends after
// 292 years.
func (n Need) until(now time.Time) time.Time {
	return time.Unix(now.Unix()+int64(math.Ceil(n.Years*secondsPerYear))+1, 0).UTC()
}

// room is how many times over the layout has what is asked, where that is least.
func (n Need) room(l firn.Layout, now time.Time) float64 {
	return slices.Min(n.margins(l, now))
}

func (n Need) margins(l firn.Layout, now time.Time) []float64 {
	return []float64{
		l.Rate() / n.each(),
		float64(l.Workers()) / float64(n.Workers),
		YearsBetween(now, l.End()) / n.Years,
	}
}

// search returns the layouts that have what is asked: those known by name, and for
// each tick the one with the fewest bits, the roomiest whose ids JavaScript can
// read as numbers, and the roomiest of all.
func (n Need) search(now time.Time) []Proposal {
	var all []Proposal
	add := func(l firn.Layout) {
		if n.meets(l, now) && !slices.ContainsFunc(all, func(p Proposal) bool { return p.Layout == l }) {
			all = append(all, Proposal{Layout: l, Room: n.room(l, now), Spare: max(widest-l.Bits(), 0)})
		}
	}
	for _, l := range firn.Presets() {
		add(l)
	}
	for _, unit := range units {
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
func (n Need) least(unit int64) (worker, seq int) {
	seconds := (time.Duration(unit) * time.Millisecond).Seconds()
	for math.Ldexp(1, seq)/seconds < n.each() {
		seq++
	}
	return bits.Len64(uint64(n.Workers - 1)), seq
}

// fit returns the epoch that a layout needs with so many bits below the time,
// and how many bits of time it then takes. It is not ok if there is no such
// epoch: there is none before 1970.
func (n Need) fit(unit int64, below int, now time.Time) (epoch int64, clock int, ok bool) {
	from := now.Add(-behind)
	epoch = time.Date(from.UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	if n.Above > 0 {
		// The tick that holds from has to be above the one in the id.
		ticks := int64(n.Above)>>below + 1
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
func (n Need) fewest(unit int64, now time.Time) (best split, ok bool) {
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
func (n Need) roomiest(unit int64, total int, now time.Time) (best firn.Layout, ok bool) {
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
func (n Need) possible(now time.Time) bool {
	return slices.ContainsFunc(units, func(unit int64) bool {
		_, ok := n.fewest(unit, now)
		return ok
	})
}

// relaxed returns what would do where nothing does.
func (n Need) relaxed(now time.Time) (all []Relaxation) {
	most := func(r Requirement, from float64, ask func(*Need, float64)) {
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
			all = append(all, Relaxation{r, low})
		}
	}
	if n.WorkerRate > n.Rate/float64(n.Workers) {
		most(WorkerRate, n.WorkerRate, func(m *Need, v float64) { m.WorkerRate = v })
	} else {
		most(Rate, n.Rate, func(m *Need, v float64) { m.Rate = v })
	}
	// Fewer workers have to make more ids each, so this is no scale to halve.
	for w := int64(1) << 62; w > 0; w >>= 1 {
		m := n
		m.Workers = w
		if w < n.Workers && m.possible(now) {
			all = append(all, Relaxation{Workers, float64(w)})
			break
		}
	}
	most(Years, n.Years, func(m *Need, v float64) { m.Years = v })
	return all
}

// FewYears is when a layout's end is near: moving a live system to another
// layout takes years, not days.
const FewYears = 10

// YearsBetween is how many years lie between two times.
func YearsBetween(from, to time.Time) float64 { return float64(to.Unix()-from.Unix()) / secondsPerYear }
