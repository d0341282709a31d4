package ui

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 100, time.Second, "0 of 100 ids (0 %), 0/s"},
		{4_096_000, 100_000_000, time.Second, "4,096,000 of 100,000,000 ids (4 %), 4,096,000/s, 23s left"},
		{50, 100, 2 * time.Second, "50 of 100 ids (50 %), 25/s, 2s left"},
		{1 << 62, 1<<63 - 1, 1000 * time.Second, "4,611,686,018,427,387,904 of 9,223,372,036,854,775,807 ids (50 %), 4,611,686,018,427,388/s, 16m40s left"},
	} {
		if got := progressLine("ids", tt.done, tt.total, tt.elapsed); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}

// Where nobody looks, or lines of ids would be torn, nothing is shown.
func TestProgressQuiet(t *testing.T) {
	var errs bytes.Buffer
	var done atomic.Int64
	ShowProgress(io.Discard, &errs, 100, &done).Stop()
	if errs.Len() > 0 {
		t.Errorf("shown: %q", errs.String())
	}
}

// A line that says how far something is goes on one line of the terminal.
func TestCut(t *testing.T) {
	const line = "12 of 32 shards moved; copy 64 % of 123 GB, 12m30s left, 5.66 MB behind, 123,456,789 rows"
	if got, want := cut(line, 79), "12 of 32 shards moved; copy 64 % of 123 GB, 12m30s left, 5.66 MB behind, 123,45"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
}
