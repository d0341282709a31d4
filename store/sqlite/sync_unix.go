//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

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
