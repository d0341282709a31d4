package main

import (
	"log/slog"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memory"
)

const dense = "dense numbers"

// numbers are of a segment series, beside the atomic add that a process alone
// would make them with. The step is large, so that what is compared is the cost
// of a number and not of the store.
func numbers() (all []contender, done func() error, err error) {
	s, err := sequence.Open(ctx, memory.New(), "bench", &sequence.Options{
		Cache: 1 << 24, MaxUnused: 1 << 26, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	var word atomic.Int64
	block := make([]firn.ID, 0, 64)
	all = []contender{
		{name: "atomic add", role: floor, make: func(n int) {
			for range n {
				sink.number = word.Add(1)
			}
		}},
		{name: "firn Series.Next", make: func(n int) {
			for range n {
				id, err := s.Next(ctx)
				if err != nil {
					panic(err)
				}
				sink.number = int64(id)
			}
		}},
		{name: "firn Series.Next, as a Source", make: func(n int) { next(s, n) }},
		{name: "firn Series.Append of 64, a number", make: func(n int) {
			for range n / 64 {
				if block, err = s.Append(ctx, block[:0], 64); err != nil {
					panic(err)
				}
			}
			sink.number = int64(block[0])
		}},
	}
	for i := range all {
		all[i].group = dense
	}
	return all, s.Close, nil
}
