package lease

import (
	"time"

	"github.com/firn-id/firn/lease/term"
)

// started is what boot counts from where the system's boot clock is not at hand.
var started = time.Now()

// clocks reads the system's wall clock and the boot clock. The wall clock's
// reading is without Go's monotonic one, which would hide its steps from Sub.
func clocks() term.Now { return term.Now{Wall: time.Now().Round(0), Boot: boot()} }
