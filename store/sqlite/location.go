package sqlite

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/store"
)

// A location is where a store is.
type location struct {
	// given is the path as the caller named it. It is what later processes open,
	// so it is what must lead to the open file.
	given string

	// file is the same without symbolic links. SQLite puts its files beside it
	// and so do we: whoever comes by another link must find them.
	file string
}

// maxLinks bounds a chain of symbolic links at the end of a path.
const maxLinks = 40

// locate finds out where path leads, whether or not a file is there. The path
// must be absolute.
func locate(path string) (location, error) {
	if path == "" {
		return location{}, errors.New("store/sqlite: no path given")
	}
	if !filepath.IsAbs(path) {
		return location{}, relative(path)
	}
	at := location{given: filepath.Clean(path)}
	file := at.given
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return location{}, at.explainDir(filepath.Dir(file), err)
		}
		file = filepath.Join(dir, filepath.Base(file))
		target, err := os.Readlink(file)
		if err != nil { // not a link, or nothing there
			at.file = file
			return at, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		file = target
	}
	return location{}, at.explain(fmt.Errorf("more than %d symbolic links", maxLinks))
}

// relative is the error of a relative path: two programs that agree on it would have two
// files, and the same ids. It names a file only if that is there: whoever follows the error
// in two directories must not make two.
func relative(path string) error {
	found := ""
	if whole, err := filepath.Abs(path); err == nil {
		if _, err := os.Stat(whole); err == nil {
			found = fmt.Sprintf("; the one in this directory is %q", whole)
		}
	}
	return fmt.Errorf("store/sqlite: %q is a relative path, which is another file in each working directory, and each file gives the same ids; "+
		"write the absolute path of the one file that all processes of this host use%s", path, found)
}

// sidecar is the path of the hidden file. It begins with a dot so that neither
// "rm ids.db*" nor "rm *" takes the memory of the store with the store.
func (at location) sidecar() string {
	return filepath.Join(filepath.Dir(at.file), "."+filepath.Base(at.file)+".id")
}

// journals are the files that SQLite puts beside a database.
func (at location) journals() []string {
	return []string{at.file + "-wal", at.file + "-shm", at.file + "-journal"}
}

// rows are those of the journals that have rows of the database.
func (at location) rows() []string { return []string{at.file + "-wal", at.file + "-journal"} }

// temporaryPrefix is how names begin that are given for a moment.
func (at location) temporaryPrefix() string { return "." + filepath.Base(at.file) + temporaryInfix }

// temporary returns a new name in the same directory.
func (at location) temporary() string {
	var b [8]byte
	rand.Read(b[:])
	return filepath.Join(filepath.Dir(at.file), at.temporaryPrefix()+hex.EncodeToString(b[:]))
}

func (at location) String() string { return "sqlite:" + at.given }

func (at location) forgot(format string, args ...any) *store.ForgotError {
	return &store.ForgotError{Store: at.String(), What: fmt.Sprintf(format, args...)}
}

// syncDir makes the names in the store's directory durable.
func (at location) syncDir() error {
	return syncDir(filepath.Dir(at.file))
}
