package lease

import (
	"time"

	"github.com/firn-id/firn/internal/term"
)

// started is what boot counts from where the system's boot clock is not at hand.
var started = time.Now()

// clocks reads the system's wall clock and the boot clock. The wall clock's
// reading is without Go's monotonic one, which would hide its steps from Sub.
func clocks() term.Now {
	return atOnce(func() time.Time { return time.Now().Round(0) }, boot)
}

// atOnce reads two clocks at one instant, nearly: who is held up between two
// readings would take a clock for as wrong as that lasted, so it reads again.
func atOnce(wall func() time.Time, boot func() time.Duration) term.Now {
	const near, tries = time.Millisecond, 5
	for n := 1; ; n++ {
		before := boot()
		w := wall()
		took := boot() - before
		if took <= near || n == tries {
			return term.Now{Wall: w, Boot: before + took/2}
		}
	}
}
