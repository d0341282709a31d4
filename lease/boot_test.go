package lease

import (
	"testing"
	"time"
)

// A difference of two readings shows that the wall clock was set between them,
// and the boot clock does not.
func TestClocksShowSteps(t *testing.T) {
	before := clocks()
	time.Sleep(time.Millisecond)
	after := clocks()
	if after.Wall != after.Wall.Round(0) {
		t.Errorf("%s carries a monotonic reading, so that Sub goes by that", after.Wall)
	}
	if step := after.Wall.Sub(before.Wall) - (after.Boot - before.Boot); step.Abs() > time.Second {
		t.Errorf("wall clock and boot clock are %s apart within a moment", step)
	}
}

// Who is held up between the readings of two clocks does not take one of them for wrong.
func TestClocksAtOnce(t *testing.T) {
	origin := time.Now()
	for _, long := range []int{0, 1, 3, 100} { // so many readings are held up
		var passed time.Duration
		read := 0
		wall := func() time.Time {
			at := origin.Add(passed)
			if read++; read <= long {
				passed += 50 * time.Millisecond
			}
			return at
		}
		now := atOnce(wall, func() time.Duration { return passed })
		off := (now.Wall.Sub(origin) - now.Boot).Abs()
		if long < 5 && off > 0 || off > 25*time.Millisecond {
			t.Errorf("%d readings held up: they are %s apart", long, off)
		}
	}
}
