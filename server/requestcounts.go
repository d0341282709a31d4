package server

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// latencies is how many buckets there are: up to 1 µs, up to 2, up to 4 and so on;
// the last one has all that took longer than 8 s.
const latencies = 25

// LatencyBound returns the longest time that bucket i of [Counts] is for; negative
// for the last one, which has no bound.
func LatencyBound(i int) time.Duration {
	if i >= latencies-1 {
		return -1
	}
	return time.Microsecond << i
}

// Counts are what was asked of a series since the process began.
type Counts struct {
	Requests uint64 // a range is one, and so is each command of a pipeline
	Values   uint64 // given out; for errors that came in between, thrown away
	Errors   uint64 // requests that the source failed
	// Latency counts how often the source was asked, by how long it took: requests
	// that came together are one. LatencyBound has the buckets.
	Latency [latencies]uint64
	Took    time.Duration // all of them together
}

// counts are Counts that are being counted.
type counts struct {
	_                        [64]byte // on cache lines of their own
	requests, values, errors atomic.Uint64
	took                     atomic.Int64
	latency                  [latencies]atomic.Uint64
	_                        [64]byte
}

// add counts one draw.
func (c *counts) add(requests, values int, took time.Duration, err error) {
	c.requests.Add(uint64(requests))
	c.values.Add(uint64(values))
	if err != nil {
		c.errors.Add(uint64(requests))
	}
	c.took.Add(int64(took))
	c.latency[bucket(took)].Add(1)
}

// bucket is the first one whose bound is not below d.
func bucket(d time.Duration) int {
	µs := (uint64(max(d, 1)) + uint64(time.Microsecond) - 1) / uint64(time.Microsecond)
	return min(bits.Len64(µs-1), latencies-1)
}

// Counts returns what was asked so far.
func (s *Series) Counts() Counts { return s.counts.Load().sum() }

func (c *counts) sum() Counts {
	out := Counts{
		Requests: c.requests.Load(), Values: c.values.Load(), Errors: c.errors.Load(),
		Took: time.Duration(c.took.Load()),
	}
	for i := range c.latency {
		out.Latency[i] = c.latency[i].Load()
	}
	return out
}

// countOn has a series count on from what another one has counted.
func (s *Series) countOn(from *Series) { s.counts.Store(from.counts.Load()) }

// follow is countOn of a series that takes the place of another one, in its outages too.
func (s *Series) follow(old *Series) {
	s.countOn(old)
	s.trouble = old.trouble
}
