//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// writable returns an error if this process may not write what is at path.
func writable(path string) error {
	if os.Getuid() != os.Geteuid() {
		return nil // the system tells what the other one may
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &os.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// share gives a new file the owner and group of the database, as far as this user may, and
// lets everybody read it and the group write it that may write the database.
func (at location) share(name string) error {
	fi, err := os.Stat(at.file)
	if missing(err) {
		return os.Chmod(name, 0o644)
	}
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		if os.Chown(name, int(st.Uid), int(st.Gid)) != nil {
			_ = os.Chown(name, -1, int(st.Gid)) // whoever may not write it then is told so
		}
	}
	return os.Chmod(name, 0o644|fi.Mode().Perm()&0o060)
}

// syncDir makes the names in dir durable, where its file system knows how.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
