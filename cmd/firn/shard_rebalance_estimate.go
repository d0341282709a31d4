package main

import (
	"fmt"
	"io"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/rebalance"
)

// A rebalanceEstimate is what a rebalance is expected to take, as --json prints it.
type rebalanceEstimate struct {
	Moves       int     `json:"moves"`
	Unknown     int     `json:"moves_not_estimated,omitempty"` // their copies are in no number
	Copy        float64 `json:"copy_seconds"`
	CopyMost    float64 `json:"copy_seconds_most"`
	Longest     float64 `json:"longest_copy_seconds"`
	LongestMost float64 `json:"longest_copy_seconds_most"`
	WALKept     int64   `json:"wal_kept_bytes_most"`
	WALServer   string  `json:"wal_kept_on,omitempty"`
	Pause       float64 `json:"pause_ms"`
	PauseMost   float64 `json:"pause_ms_most"`
	Pauses      float64 `json:"pauses_ms"` // of all shards
	PausesMost  float64 `json:"pauses_ms_most"`
}

func newRebalanceEstimate(e rebalance.Estimate) *rebalanceEstimate {
	if e.Moves == 0 {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return &rebalanceEstimate{
		Moves: e.Moves, Unknown: e.Unknown, Copy: e.Copy.Least.Seconds(), CopyMost: e.Copy.Most.Seconds(),
		Longest: e.Longest.Least.Seconds(), LongestMost: e.Longest.Most.Seconds(), WALKept: e.WAL, WALServer: e.WALServer,
		Pause: ms(e.Pause.Least), PauseMost: ms(e.Pause.Most), Pauses: ms(e.Pauses.Least), PausesMost: ms(e.Pauses.Most),
	}
}

// printRebalanceEstimate prints what a rebalance is expected to take.
func printRebalanceEstimate(out io.Writer, e rebalance.Estimate) error {
	if e.Moves > e.Unknown {
		fmt.Fprintf(out, "copy: %s for %s, the longest %s, as fast as this host reads from the sources now (measured); targets may write %d times as slowly (assumed)\n",
			fromTo(e.Copy.Least, e.Copy.Most), phrase.Plural(e.Moves-e.Unknown, "move"), fromTo(e.Longest.Least, e.Longest.Most), move.SlowerWrites)
		fmt.Fprintf(out, "WAL: until the copy of a move is complete, its source keeps WAL for it: %s on %s, at the rate of now\n", upTo("up to ", e.WAL), e.WALServer)
	}
	if e.Unknown > 0 {
		fmt.Fprintf(out, "copy: no estimate for %s, because no table there has %d rows that are counted (ANALYZE counts them)\n", phrase.Plural(e.Unknown, "move"), move.LeastRows)
	}
	if e.Moves > 0 {
		fmt.Fprintf(out, "pause of each shard: about %s on idle servers, up to %s under this load; of all shards together, one after the other: %s to %s\n",
			e.Pause.Least.Round(time.Millisecond), e.Pause.Most.Round(time.Millisecond), e.Pauses.Least.Round(time.Millisecond), e.Pauses.Most.Round(time.Millisecond))
	}
	_, err := fmt.Fprintln(out)
	return err
}
