//go:build (unix && !aix && !solaris) || illumos

package lease

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens a file and locks it until it is closed, or fails at once.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if err == syscall.EWOULDBLOCK {
			err = errLocked
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// inode tells a file from its copies.
func inode(f *os.File) (device, number uint64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return uint64(st.Dev), uint64(st.Ino), nil
}

// diskFull says whether a write failed because no space is left.
func diskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
