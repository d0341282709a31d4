package dated

import (
	"testing"
	"time"
)

// The date that a process reckons from a reading of the store's clock is sure for a moment only, and not
// where its own two clocks disagree: it was suspended, or its clock was set, and how much time has passed
// is not known.
func TestSight(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		store      time.Time
		wall, mono time.Duration // since it was asked, which took 10 ms
		sure       bool
	}{
		"at once":                      {noon, 20 * time.Millisecond, 20 * time.Millisecond, true},
		"a second ago":                 {noon, 2 * time.Second, 2 * time.Second, false},
		"suspended since":              {noon, time.Hour, 20 * time.Millisecond, false},
		"the own clock was set back":   {noon, -time.Hour, 20 * time.Millisecond, false},
		"suspended while it was asked": {noon, 300 * time.Millisecond, 20 * time.Millisecond, false},
		"midnight is near":             {noon.Add(12*time.Hour - 30*time.Millisecond), 20 * time.Millisecond, 20 * time.Millisecond, false},
		"midnight is past":             {noon.Add(12*time.Hour + 200*time.Millisecond), 20 * time.Millisecond, 20 * time.Millisecond, true},
	} {
		d := &drawer{Rules: Rules{Date: &Forms[0], Zone: time.UTC}, sent: Instant{noon, time.Minute}}
		d.see(Instant{noon.Add(10 * time.Millisecond), time.Minute + 10*time.Millisecond}, tt.store)
		if _, sure := d.now(Instant{noon.Add(tt.wall), time.Minute + tt.mono}); sure != tt.sure {
			t.Errorf("%s: sure: %t", name, sure)
		}
	}
}
