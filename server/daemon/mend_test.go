package daemon

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/store/sqlite"
)

// A store counts as recovered since a loss if its mark is of after that. A mark of a time to come is of a
// clock that was ahead: it may be of before the loss, and a server that believed it would use a store
// that has forgotten what it gave out.
func TestRecoveredSince(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ids.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lost := time.Now().Add(-time.Minute)
	if recoveredSince(t.Context(), "sqlite:"+path, lost) {
		t.Error("a store without a mark was recovered")
	}
	for _, tt := range []struct {
		name string
		at   time.Duration // the mark, after the loss
		want bool
	}{
		{"before the loss", -time.Second, false},
		{"after it", 30 * time.Second, true},
		{"of a time to come", time.Minute + recovery.ClockError + time.Hour, false},
	} {
		if err := record.MarkRecovered(t.Context(), s, lost.Add(tt.at)); err != nil {
			t.Fatal(err)
		}
		if got := recoveredSince(t.Context(), "sqlite:"+path, lost); got != tt.want {
			t.Errorf("a mark %s: recovered is %t", tt.name, got)
		}
	}
}
