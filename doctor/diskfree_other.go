//go:build !linux && !darwin && !freebsd && !windows

package doctor

// diskFree does not know here.
func diskFree(string) (int64, bool) { return 0, false }
