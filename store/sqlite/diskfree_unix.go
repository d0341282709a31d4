//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// noSpace is less than SQLite's log needs of a disk to begin, in bytes.
const noSpace = 64 << 10

// full reports whether the disk of a directory has too little space left for SQLite's log.
func full(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && int64(st.Bavail)*int64(st.Bsize) < noSpace
}
