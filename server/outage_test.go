package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

// few is a source that has so many numbers left, and gives all of a call or none.
type few struct {
	next, last firn.ID
	err        error
}

func (f *few) Next(context.Context) (firn.ID, error) { panic("not used") }

func (f *few) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	if f.err != nil {
		return dst, f.err
	}
	if f.next+firn.ID(n)-1 > f.last {
		return dst, errors.New("too few are left")
	}
	for range n {
		dst = append(dst, f.next)
		f.next++
	}
	return dst, nil
}

// Requests that came together get what there is, the first ones first.
func TestGatherMoreThanIsLeft(t *testing.T) {
	for _, tt := range []struct {
		each []int
		want int // values
	}{
		{[]int{1, 1, 1, 1, 1, 1, 1, 1}, 5},
		{[]int{2, 2, 2}, 4},
		{[]int{6, 1}, 0},
		{[]int{5}, 5},
		{[]int{6}, 0},
	} {
		src := &few{next: 1, last: 5}
		x := enter(t, newServer(t, nil, server.Numbers("orders", src, nil)), "")
		all, err := x.Gather(t.Context(), "orders", nil, tt.each)
		if len(all) != tt.want || (err == nil) != (tt.want == 5 && len(tt.each) == 1) {
			t.Errorf("%v of 5 numbers: %d values, %v; want %d", tt.each, len(all), err, tt.want)
		}
		if int(src.next) != tt.want+1 {
			t.Errorf("%v of 5 numbers: %d were used up, and %d were given", tt.each, src.next-1, tt.want)
		}
	}
}

// The log says once that a series cannot issue and once that it issues again, and no hint
// where there is none. A request for too many is no trouble of the series.
func TestLogOfAnOutage(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	var log bytes.Buffer
	src := &few{next: 1, last: 1000}
	tooMany := errors.New("too many")
	explain := func(err error) server.Explanation {
		var left int64
		if errors.Is(err, tooMany) {
			left = 3
		}
		return server.Explanation{Again: true, Trouble: "the store does not answer", Left: left}
	}
	x := enter(t, newServer(t, &server.Options{
		Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, server.Numbers("orders", src, &server.SeriesOptions{Explain: explain})), "")
	draw := func() error {
		now = now.Add(time.Second)
		_, err := x.Next(t.Context(), "orders", nil, 1)
		return err
	}
	src.err = tooMany
	if err := draw(); err == nil || strings.Contains(err.Error(), "since") || server.Hint(err) != "ask for at most 3" {
		t.Errorf("a request for too many: %v; %s", err, server.Hint(err))
	}
	for range 2 { // outages, the second within a minute of the first, so that nobody is told
		src.err = errors.New("connection refused")
		for range 3 {
			draw()
		}
		src.err = nil
		now = now.Add(time.Minute / 4) // in which nobody asks: when it could have issued is not known
		for range 3 {
			if err := draw(); err != nil {
				t.Error(err)
			}
		}
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(line, "level=")
		lines = append(lines, strings.TrimSpace(line))
	}
	want := []string{
		`WARN msg="a series cannot issue" series=orders since=2026-11-23T22:05:15Z err="connection refused"`,
		`INFO msg="the series issues again" series=orders since=2026-11-23T22:05:15Z last_failure=2026-11-23T22:05:17Z`,
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// Readiness says how long a series still issues without its store, or that it has ended,
// never that it ends in 0s.
func TestReadyOfAnOutage(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	away := now.Add(-5 * time.Minute)
	flake := server.State{Kind: "flake", StoreAway: true, TroubleSince: away, Budget: time.Minute}
	numbers := server.State{Kind: "sequence", StoreAway: true, TroubleSince: away, Budget: 10 * time.Second}
	const since = "the store has not answered since 2026-11-23T22:00:13Z, and "
	for _, tt := range []struct {
		state server.State
		left  time.Duration
		hand  int64
		want  string
	}{
		{flake, time.Minute, 0, ""},
		{flake, 5 * time.Second, 0, since + "ids end in 5s"},
		{flake, 300 * time.Millisecond, 0, since + "ids end in less than 1s"},
		{flake, 0, 0, since + "ids ended at 2026-11-23T22:05:13Z; they resume when it answers"},
		{flake, -40 * time.Second, 0, since + "ids ended at 2026-11-23T22:04:33Z; they resume when it answers"},
		{numbers, time.Minute, 100, ""},
		{numbers, 2 * time.Second, 100, since + "the numbers in hand end in 2s"},
		{numbers, 10 * time.Millisecond, 1, since + "the numbers in hand end in less than 1s"},
		{numbers, 0, 0, since + "there are no numbers until it answers"},
	} {
		tt.state.EndsAt = now.Add(tt.left)
		if tt.state.Kind == "sequence" {
			tt.state.Counter = &server.Counter{Last: 1000, Next: 101, Reserved: tt.hand}
		}
		got := ""
		if err := tt.state.Ready(now); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s, %s and %d numbers left: %q, want %q", tt.state.Kind, tt.left, tt.hand, got, tt.want)
		}
	}
}
