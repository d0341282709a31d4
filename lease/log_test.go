package lease

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store/memory"
)

// While the store is away the log says until when ids continue, again in the last minute,
// at the moment when they end, and when they resume: each once.
func TestLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := open(t, s, o)
		defer closed(t, l)
		time.Sleep(10 * time.Minute)
		lines := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			var got []string
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "does not say whether it can lose writes") { // asked first, perhaps
					got = append(got, line)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), log.String())
			}
			for i, w := range want {
				if !strings.Contains(got[i], w) {
					t.Errorf("line %d lacks %q: %s", i, w, got[i])
				}
			}
		}
		lines(0)
		s.refuse.Store(true)
		said := []string{`level=WARN msg="store does not answer; ids continue until 2000-01-01T00:1`}
		lines(3*time.Minute, said...)
		said = append(said, `level=WARN msg="store does not answer; ids continue until 2000-01-01T00:1`)
		lines(100*time.Second, said...)
		if !strings.Contains(log.String(), "left=1m0s") {
			t.Error(log.String())
		}
		said = append(said, `level=ERROR msg="ids ended: store has not answered since 2000-01-01T00:1`)
		lines(10*time.Minute, said...)
		s.refuse.Store(false)
		lines(time.Hour, append(said, `level=INFO msg="ids resumed after 9m`)...)
	})
}
