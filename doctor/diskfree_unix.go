//go:build linux || darwin || freebsd

package doctor

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskFree is how many bytes this user can still write beside a file, if the
// system says.
func diskFree(path string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
