//go:build unix && !linux && !darwin && !freebsd

package sqlite

import (
	"os"
	"runtime"
	"syscall"
)

// identify returns the identity of the file at path.
func identify(path string) (identity, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{Inode: uint64(st.Ino)}, nil
}

// fileSystem knows nothing here.
func fileSystem(path string) (host, error) {
	return host{name: "a " + runtime.GOOS + " file system"}, nil
}
