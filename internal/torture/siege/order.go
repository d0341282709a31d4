//go:build linux

package siege

import (
	"cmp"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// An Order says how far ids of different workers were out of order against real time:
// an id is late by a span if, when the call for it was made, another call had already
// returned one of another worker whose time is that much later.
type Order struct {
	Compared int64         `json:"compared"` // ids whose call's time is known
	Late     int64         `json:"late"`
	Median   time.Duration `json:"median_ns"` // of those that are late
	Worst    time.Duration `json:"worst_ns"`
}

func (o *Order) add(other Order) {
	o.Compared += other.Compared
	o.Late += other.Late
	o.Worst = max(o.Worst, other.Worst)
}

// A moment is when an id was issued, and what it says.
type moment struct {
	begun, ended int64 // by the boot clock
	worker       int64
	tick         firn.Tick
}

// OrderOf compares the first ids of all runs of issuers.
func OrderOf(l firn.Layout, issuers []Issuer) Order {
	byBegin := moments(newReader(l), issuers)
	byEnd := slices.Clone(byBegin)
	slices.SortFunc(byBegin, func(a, b moment) int { return cmp.Compare(a.begun, b.begun) })
	slices.SortFunc(byEnd, func(a, b moment) int { return cmp.Compare(a.ended, b.ended) })
	o := Order{Compared: int64(len(byBegin))}
	var late []time.Duration
	top := [2]moment{{worker: -1}, {worker: -1}} // the latest of those that had returned, of two workers
	n := 0
	for _, m := range byBegin {
		for ; n < len(byEnd) && byEnd[n].ended < m.begun; n++ {
			raise(&top, byEnd[n])
		}
		latest := top[0]
		if latest.worker == m.worker {
			latest = top[1]
		}
		if latest.tick > m.tick {
			late = append(late, l.Time(latest.tick).Sub(l.Time(m.tick)))
		}
	}
	if o.Late = int64(len(late)); o.Late > 0 {
		slices.Sort(late)
		o.Median, o.Worst = late[len(late)/2], late[len(late)-1]
	}
	return o
}

func moments(read reader, issuers []Issuer) (all []moment) {
	add := func(r ledger.Run) {
		if r.Begun != 0 {
			worker, tick := read.of(r.First)
			all = append(all, moment{r.Begun, r.Boot, worker, tick})
		}
	}
	for i := range issuers {
		for _, runs := range issuers[i].Hands {
			for _, r := range runs {
				add(r)
			}
		}
	}
	return all
}

// raise keeps in top the latest of two workers.
func raise(top *[2]moment, m moment) {
	switch {
	case m.tick <= top[1].tick:
	case m.worker == top[0].worker:
		top[0].tick = max(top[0].tick, m.tick)
	case m.tick > top[0].tick:
		top[0], top[1] = m, top[0]
	default:
		top[1] = m
	}
}
