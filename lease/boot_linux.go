package lease

import (
	"syscall"
	"time"
	"unsafe"
)

// boot is the time since the system started, suspended or not. Go's monotonic
// clock stands still through a suspend on Linux.
func boot() time.Duration {
	const clockBoottime = 7 // linux/time.h
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}
