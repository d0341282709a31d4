package main

import (
	"fmt"
	"io"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/move"
)

// This file says what a move is expected to take, and by what that was estimated.

// estimateFields are the estimate of a move as --json prints it. They are missing where nothing was measured.
type estimateFields struct {
	PauseMost float64 `json:"pause_ms_most,omitempty"`
	CopyRate  float64 `json:"copy_bytes_per_second,omitempty"` // at which this host reads from the source
	Copy      float64 `json:"copy_seconds,omitempty"`
	CopyMost  float64 `json:"copy_seconds_most,omitempty"`
	WALKept   int64   `json:"wal_kept_bytes_most,omitempty"`
}

func newEstimateFields(p *move.Plan) estimateFields {
	least, most := p.CopyTime()
	return estimateFields{
		PauseMost: float64(p.PauseMost.Microseconds()) / 1000, CopyRate: p.Measured.CopyRate,
		Copy: least.Seconds(), CopyMost: most.Seconds(), WALKept: p.WALKept(),
	}
}

// printEstimate prints how much a move copies, and what that takes.
func printEstimate(out io.Writer, p *move.Plan) error {
	if len(p.Obstacles) > 0 { // nothing was measured
		_, err := fmt.Fprintf(out, "\n%s to copy\n", phrase.Bytes(p.Bytes()))
		return err
	}
	m := p.Measured
	fmt.Fprintf(out, "\n%s to copy; %s writes %s of WAL a second\n", phrase.Bytes(p.Bytes()), p.Source, upTo("", int64(p.WALRate)))
	if least, most := p.CopyTime(); most > 0 {
		fmt.Fprintf(out, "copy: %s. This host reads %s a second from %s (measured: table %s); %s may write %d times as slowly (assumed)\n",
			fromTo(least, most), phrase.Bytes(int64(m.CopyRate)), p.Source, m.CopyTable, p.Target, move.SlowerWrites)
		fmt.Fprintf(out, "WAL: until the copy is complete, %s keeps %s of WAL for it, at this rate\n", p.Source, upTo("up to ", p.WALKept()))
	} else {
		fmt.Fprintf(out, "copy: no estimate, because no table has %d rows that are counted (ANALYZE counts them). Until it is complete, %s keeps all WAL for it\n", move.LeastRows, p.Source)
	}
	_, err := fmt.Fprintf(out, "pause of each shard: about %s on idle servers, up to %s under this load (%s; %s to a server and back; one answer in ten took %.1f times as long as the fastest, or longer)\n",
		p.Pause.Round(time.Millisecond), p.PauseMost.Round(time.Millisecond), phrase.Counted(int64(m.Objects), "table or sequence", "tables and sequences"), m.Trip.Round(10*time.Microsecond), m.Slower)
	return err
}

// roughly rounds a time that is estimated.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "1s"
	case d < time.Minute:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}

// fromTo says that something is expected to take least to most.
func fromTo(least, most time.Duration) string {
	from, to := roughly(least), roughly(most)
	if from == to {
		return "about " + from
	}
	return from + " to " + to
}

// upTo says how many bytes are estimated. Fewer than 1000 come of a server that does nothing else.
func upTo(words string, n int64) string {
	if n < 1000 {
		return "less than 1 kB"
	}
	return words + phrase.Bytes(n)
}
