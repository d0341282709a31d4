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
