//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// links is how many names a file has.
func links(fi os.FileInfo) int {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return int(st.Nlink)
}
