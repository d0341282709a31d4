package testserver

import "golang.org/x/sys/unix"

// free is how many bytes there is room for in a file system that is in memory; of others
// none.
func free(dir string) uint64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
