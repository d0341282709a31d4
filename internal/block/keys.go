package block

import "time"

// Keys is what the keys of all counters begin with.
const Keys = "segment/"

// Key is the key of a series' counter.
func Key(series string) string { return Keys + series }

// Limits and defaults of what a process takes ahead of demand.
const (
	MaxCache         = 1 << 30 // the largest cache, and the most numbers in one range
	DefaultCache     = 100
	DefaultCacheFor  = 10 * time.Second
	DefaultMaxUnused = 100_000
)
