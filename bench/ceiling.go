package main

import (
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/bench/figures"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memory"
)

// A stay is how one contender did at its layout's ceiling: medians over some turns.
type stay struct {
	Name   string  `json:"name"`
	Share  float64 `json:"share"`     // of the ids that one worker of the layout can make
	Least  float64 `json:"least"`     // in the worst turn
	CPU    float64 `json:"cpu_ns"`    // for each id
	ToPeer float64 `json:"x_peer"`    // of bwmarrin's
	Busy   float64 `json:"processor"` // processor time by elapsed time
}

// turns is how often everything stays at the ceiling.
const turns = 3

// A crowd is what asks at the ceiling.
type crowd struct {
	name string
	make func() (int, error)
}

// atCeiling has one goroutine ask as fast as it can, for d each, in the usual
// layout.
func atCeiling(d time.Duration, match *regexp.Regexp) ([]stay, error) {
	crowds, end, err := ceilingCrowds()
	if err != nil {
		return nil, err
	}
	defer end()
	crowds = slices.DeleteFunc(crowds, func(c crowd) bool { return c.name != "bwmarrin" && !match.MatchString(c.name) })
	samples := make([][]stay, len(crowds))
	for turn := range turns {
		for i, c := range crowds {
			s, err := stayAt(d, c.make)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
			bwmarrin := samples[0]
			samples[i][turn].ToPeer = s.CPU / bwmarrin[turn].CPU
		}
	}
	stays := make([]stay, len(crowds))
	for i, c := range crowds {
		of := func(f func(stay) float64) []float64 {
			var v []float64
			for _, s := range samples[i] {
				v = append(v, f(s))
			}
			slices.Sort(v)
			return v
		}
		share := of(func(s stay) float64 { return s.Share })
		stays[i] = stay{
			Name: c.name, Share: figures.Median(share), Least: share[0],
			CPU:    figures.Median(of(func(s stay) float64 { return s.CPU })),
			ToPeer: figures.Median(of(func(s stay) float64 { return s.ToPeer })),
			Busy:   figures.Median(of(func(s stay) float64 { return s.Busy })),
		}
	}
	return stays, nil
}

func ceilingCrowds() (all []crowd, end func(), err error) {
	b, g := bwmarrin(usual), generator(usual)
	buf := make([]firn.ID, 0, 64)
	all = []crowd{
		{"bwmarrin", func() (int, error) {
			sink.number = int64(b.Generate())
			return 1, nil
		}},
		{"firn Generator through Source", each(g)},
		{"firn Generator.Append of 64", func() (n int, err error) {
			buf, err = g.Append(ctx, buf[:0], 64)
			return len(buf), err
		}},
	}
	var held []*lease.Lease
	for _, l := range []struct {
		name  string
		lanes int
	}{{"firn Lease, 1 lane", 1}, {"firn Lease, 2 lanes", 2}, {"firn Lease, 4 lanes", 4}} {
		ids, err := lease.Open(ctx, memory.New(), &lease.Options{
			Layout: usual, Lanes: l.lanes, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, nil, err
		}
		held = append(held, ids)
		all = append(all, crowd{l.name, each(ids)})
	}
	return all, func() {
		for _, ids := range held {
			ids.Close()
		}
	}, nil
}

// each asks a source for an id at a time.
func each(src firn.Source) func() (int, error) {
	return func() (int, error) {
		id, err := src.Next(ctx)
		sink.number = int64(id)
		return 1, err
	}
}

func stayAt(d time.Duration, make func() (int, error)) (stay, error) {
	const look = 1024 // ids between two looks at the clock
	count := func(d time.Duration) (n int, err error) {
		for start, next := time.Now(), look; time.Since(start) < d; next += look {
			for n < next {
				k, err := make()
				if err != nil {
					return n, err
				}
				n += k
			}
		}
		return n, nil
	}
	// What may be borrowed is borrowed before the count begins.
	if _, err := count(100 * time.Millisecond); err != nil {
		return stay{}, err
	}
	start, from := time.Now(), cpu()
	n, err := count(d)
	elapsed, used := time.Since(start), cpu()-from
	return stay{
		Share: float64(n) / (elapsed.Seconds() * usual.Rate()),
		CPU:   float64(used) / float64(n),
		Busy:  used.Seconds() / elapsed.Seconds(),
	}, err
}
