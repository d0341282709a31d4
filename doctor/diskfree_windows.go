package doctor

import (
	"math"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// diskFree is how many bytes this user can still write beside a file, if the
// system says.
func diskFree(path string) (int64, bool) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, false
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(dir, &free, nil, nil)
	return int64(min(free, math.MaxInt64)), err == nil
}
