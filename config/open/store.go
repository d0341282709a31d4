package open

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// A NoStoreError says that the file of a store is not there.
type NoStoreError struct{ URL string }

func (e *NoStoreError) Error() string { return "there is no store " + e.URL }

// Retryable is false: somebody has to name another store, or put this one back; see firn.Retryable.
func (*NoStoreError) Retryable() bool { return false }

// A DefaultStoreError says why there is no store where none is named.
type DefaultStoreError struct {
	Variable  string // that is set, and of which firn reads only the beginning, FIRN_STORE; "": none
	Container string // what says that this is a container, each of which would have a file of its own; "": none
	Err       error  // the directory of the file cannot be made; nil: this user has none
	NoHome    bool   // no directory is there, so no file can be: with Err, the directory is not this user's to make
}

func (e *DefaultStoreError) Error() string {
	switch {
	case e.Variable != "":
		return fmt.Sprintf("no store is named, and the variable %s is set, which firn does not read: this user's default file may be another store", e.Variable)
	case e.Container != "":
		return fmt.Sprintf("no store is named, and this looks like a container (%s): each container would have a file of its own, and make the same ids", e.Container)
	case e.Err != nil:
		return fmt.Sprintf("no store is named, and the directory of this user's default file cannot be made: %s", e.Err)
	}
	return "no store is named, and this user has no home directory"
}

func (e *DefaultStoreError) Unwrap() error { return e.Err }

// Retryable is false; see firn.Retryable.
func (*DefaultStoreError) Retryable() bool { return false }

// An OnMade is told of a SQLite file that was made, and whether it is the implicit one.
type OnMade func(path string, implicit bool)

// Store opens the store of a URL; "" is the default file of this user. A file that is not
// there is made, and made is told of it; where made is nil, the file has to be there.
func Store(ctx context.Context, url string, made OnMade) (*open.Store, error) {
	implicit := url == ""
	if implicit {
		path, err := DefaultStore()
		if err != nil {
			return nil, err
		}
		url = "sqlite:" + path
	}
	if err := config.CheckStore(url); err != nil {
		return nil, err
	}
	path, embedded := SqliteFile(url)
	if embedded && made == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &NoStoreError{url}
		}
	}
	if implicit && made != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			_, there := os.Stat(filepath.Dir(path))
			return nil, &DefaultStoreError{Err: err, NoHome: errors.Is(there, fs.ErrNotExist)}
		}
	}
	s, err := open.URL(ctx, url)
	if err != nil {
		return nil, err
	}
	if file, ok := s.Store.(*sqlite.Store); ok && file.Created() && made != nil {
		made(path, implicit)
	}
	return s, nil
}

// DefaultStore returns the path of the store that is used where none is named:
// the default file of this user, which programs open by sqlite.OpenDefault.
//
// There is none where a variable is set that looks like FIRN_STORE mistyped: it names another
// store, and two stores make the same ids.
func DefaultStore() (string, error) {
	for _, one := range os.Environ() {
		if name, _, _ := strings.Cut(one, "="); config.MistypedStore(name) {
			return "", &DefaultStoreError{Variable: name}
		}
	}
	path, err := sqlite.DefaultPath()
	var none *sqlite.NoDefaultError
	switch {
	case errors.As(err, &none) && none.Container != "":
		return "", &DefaultStoreError{Container: none.Container}
	case err != nil:
		return "", &DefaultStoreError{}
	}
	return path, nil
}

// SqliteFile is the path in the URL of a SQLite store.
func SqliteFile(url string) (path string, ok bool) {
	path, ok = strings.CutPrefix(url, "sqlite:")
	return strings.TrimPrefix(path, "//"), ok
}

// StoreText is the URL of a store, "" being the implicit one.
func StoreText(url string) string {
	if url != "" {
		return url
	}
	path, err := DefaultStore()
	if err != nil {
		return "the default"
	}
	return "sqlite:" + path
}

// StoresText is the URL of the stores of a series, without secrets.
func StoresText(s *config.Series) string {
	var all []string
	for _, url := range s.URLs {
		all = append(all, open.Redact(StoreText(url)))
	}
	return strings.Join(all, ", ")
}

// InContainer says that a file which was made is seen by one container only, or is "".
func InContainer(path string) string {
	if f, err := sqlite.Inspect(path); err != nil || f.FileSystem != "overlay" {
		return ""
	}
	return path + " is on overlay, as the files of a container are: it ends with the container, and each container has its own file and makes the same ids; " +
		"name one store for all containers, as postgres://USER:PASSWORD@HOST/DATABASE"
}
