//go:build darwin || freebsd

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// identify returns the identity of the file at path.
func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{Inode: st.Ino, Born: st.Btim.Nano()}, nil
}

// fileSystem says on what kind of file system path is. It returns an error if
// another kernel may have the same file open, which the system itself knows.
func fileSystem(path string) (host, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return host{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 {
		return host{}, remoteError(name)
	}
	return host{name: name, volatile: name == "tmpfs"}, nil
}
