package verify

import (
	"iter"
	"time"

	"github.com/firn-id/firn"
)

// A Report says what a [Tally] found out about its ids.
type Report struct {
	Layout   firn.Layout
	IDs      int64      // of the layout, those that repeat too
	Repeats  int64      // ids that had come before
	Repeated []Sighting // the first of these, at most MaxNamed
	Faults   int64      // what is no id of the layout
	Faulty   []Fault    // the first of these, at most MaxNamed
	Makers   []Maker    // in the order of their numbers
}

// A Maker is a worker, or a shard, that made some of the ids, as these say it. Times are
// those in its ids, in UTC.
type Maker struct {
	Shard        int64
	Worker       int64
	IDs          int64
	From, To     time.Time     // of its lowest id, and its highest
	Rate         float64       // ids per second between these
	MostInMinute int64         // ids
	LongestGap   time.Duration // between one id and the next, by their times
	GapAfter     time.Time     // where that gap begins; zero if there is none
	Backwards    int64         // ids that are below the one that was read before
	FirstBack    Sighting      // the first of these

	tally *Tally
	maker *maker
}

// A Minute is what a maker made in one.
type Minute struct {
	Start      time.Time
	IDs        int64
	LongestGap time.Duration // after an id of this minute, also where it ends in a later one
}

// Report returns what the Tally has found out so far. It takes longer the more ids there are.
func (t *Tally) Report() *Report {
	r := &Report{
		Layout: t.layout, IDs: t.ids, Repeats: t.repeats, Repeated: t.repeated[:len(t.repeated):len(t.repeated)],
		Faults: t.faults, Faulty: t.faulty[:len(t.faulty):len(t.faulty)],
	}
	for _, m := range t.inOrder() {
		r.Makers = append(r.Makers, t.follow(m))
	}
	return r
}

// follow looks at the ids of a maker in the order of their time, whichever they were
// read in.
func (t *Tally) follow(m *maker) Maker {
	made := Maker{
		Shard: m.parts.Shard, Worker: m.parts.Worker, IDs: m.ids,
		Backwards: m.backwards, FirstBack: m.back, tally: t, maker: m,
	}
	w := walk{tally: t, again: m.again}
	m.seen.each(func(state uint64) bool {
		if ended, ok := w.next(t.tick(state)); ok {
			made.MostInMinute = max(made.MostInMinute, ended.ids)
		}
		return true
	})
	made.MostInMinute = max(made.MostInMinute, w.end().ids)
	made.From, made.To = t.layout.Time(w.first), t.layout.Time(w.before)
	made.Rate = float64(m.ids) / (made.To.Sub(made.From) + t.layout.Unit()).Seconds()
	if made.LongestGap = t.span(w.gap); w.gap > 0 {
		made.GapAfter = t.layout.Time(w.gapAfter)
	}
	return made
}

// Minutes ranges over the minutes in which the maker made ids, in their order. It looks at
// the tally anew, and so has what was added after the report.
func (m *Maker) Minutes() iter.Seq[Minute] {
	return func(yield func(Minute) bool) {
		t := m.tally
		of := func(in minute) Minute { return Minute{time.Unix(in.at*60, 0).UTC(), in.ids, t.span(in.gap)} }
		w, more := walk{tally: t, again: m.maker.again}, true
		m.maker.seen.each(func(state uint64) bool {
			if ended, ok := w.next(t.tick(state)); ok {
				more = yield(of(ended))
			}
			return more
		})
		if more {
			yield(of(w.end()))
		}
	}
}

// span is how long some ticks last.
func (t *Tally) span(ticks firn.Tick) time.Duration {
	return t.layout.Time(ticks).Sub(t.layout.Time(0))
}

// A walk goes along the ticks of a maker's ids.
type walk struct {
	tally *Tally
	again map[int64]int64 // of the maker

	begun         bool
	first, before firn.Tick
	in            minute    // that of before
	gap           firn.Tick // the longest between one id and the next
	gapAfter      firn.Tick
}

// A minute is what a maker made in one.
type minute struct {
	at  int64 // since 1970
	ids int64
	gap firn.Tick // the longest after one of them
}

// next goes to the next tick, and returns the minute that this ends, if it ends one.
func (w *walk) next(tick firn.Tick) (ended minute, ok bool) {
	switch {
	case !w.begun:
		w.begun, w.first, w.in.at = true, tick, w.tally.minute(tick)
	case tick != w.before:
		w.in.gap = max(w.in.gap, tick-w.before)
		if tick-w.before > w.gap {
			w.gap, w.gapAfter = tick-w.before, w.before
		}
		if at := w.tally.minute(tick); at != w.in.at {
			ended, ok = w.end(), true
			w.in = minute{at: at}
		}
	}
	w.in.ids++
	w.before = tick
	return ended, ok
}

// end is the last minute.
func (w *walk) end() minute {
	ended := w.in
	ended.ids += w.again[ended.at]
	return ended
}
