//go:build !windows

package clienttest

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// Runs that have ids in common are found, in whichever order they come.
func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		runs []run
		want int64
	}{
		{nil, 0},
		{[]run{{10, 5}, {15, 1}, {1, 9}}, 0},
		{[]run{{15, 1}, {10, 6}}, 1},
		{[]run{{10, 5}, {10, 5}}, 5},
		{[]run{{1, 100}, {50, 2}, {60, 2}}, 4},
		{[]run{{1, 100}, {50, 2}, {99, 4}}, 4},
	} {
		if got, _ := repeats(c.runs); got != c.want {
			t.Errorf("%v: %d ids repeat, want %d", c.runs, got, c.want)
		}
	}
}

// What a process prints is refused if its runs do not increase, or are none. A line that was cut off is left out.
func TestReadRuns(t *testing.T) {
	for text, want := range map[string]string{
		"5 3\n8 1\n": "", "5 3\n7 1\n": "7 after 7", "5 3\n2 1\n": "2 after 7", "5\n": "is no run", "5 0\n": "is no run", "5 3\n8 ": "", "x 1\n": "is no run",
	} {
		var total atomic.Int64
		m := &member{}
		err := m.read(strings.NewReader(text), &total)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err == nil && total.Load() < 3 {
			t.Errorf("%q: %d ids", text, total.Load())
		}
	}
}
