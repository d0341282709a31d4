//go:build linux && (amd64 || arm64)

package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check returns why no page can be served at a path; nil if one can. It changes nothing. The error is an [*UnusableError]: the
// directory is missing, cannot be written to, or is on a file system that cannot have pages; the path is a directory or
// somebody's file; or another agent serves a page there.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := checkDir(path); err != nil {
		return err
	}
	a := &agent{path: path}
	return errors.Join(a.claim(), a.end())
}

// checkDir is Check for the directory of a page, and for a path that is a directory itself.
func checkDir(path string) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return &UnusableError{Path: path, Why: "it is a directory: name a file in it, such as " + filepath.Join(path, "page")}
	}
	dir := filepath.Dir(path)
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &UnusableError{Path: path, Why: fmt.Sprintf("there is no directory %s: mkdir -p %[1]s", dir)}
	case errors.Is(err, unix.ENOTDIR):
		return &UnusableError{Path: path, Why: dir + " is not a directory: use another path"}
	case errors.Is(err, fs.ErrPermission):
		return &UnusableError{Path: path, Why: fmt.Sprintf("this user cannot reach directory %s: let user %d search the directories above it, or use another path", dir, os.Geteuid())}
	case err != nil:
		return err
	}
	defer f.Close()
	if _, why, err := checkFileSystem(f); err != nil || why != "" {
		return errors.Join(err, unusable(path, why))
	}
	switch err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err {
	case nil:
		return nil
	case unix.EROFS:
		return &UnusableError{Path: path, Why: fmt.Sprintf("directory %s is on a file system that is read-only: use another path", dir)}
	default:
		return &UnusableError{Path: path, Why: fmt.Sprintf("this user cannot write to directory %s: let user %d write to it, or use another path", dir, os.Geteuid())}
	}
}

// cannotMake explains an error of making a page.
func (a *agent) cannotMake(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("page: page %s: the file system of %s has no room for 4 KB: remove files there, or use another path: %w", a.path, filepath.Dir(a.path), err)
	}
	return err
}
