// Package whichstore turns the store of the settings, a URL or nothing for this user's default file,
// into what texts call it, and into the path of its file.
package whichstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/variable"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// A DefaultStoreError says why there is no store where none is named.
type DefaultStoreError struct {
	Variable  string // that is set, and of which firn reads only the beginning, FIRN_STORE; "": none
	Container string // what says that this is a container, each of which would have a file of its own; "": none
	Err       error  // the directory of the file cannot be made; nil: this user has none
	NoHome    bool   // with Err: no directory is there, so no file can be
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

// Default returns the path of the store that is used where none is named:
// the default file of this user, which programs open by sqlite.OpenDefault.
//
// There is none where a variable is set that looks like FIRN_STORE mistyped: it names another
// store, and two stores make the same ids.
func Default() (string, error) {
	if name := variable.SetMistyped(); name != "" {
		return "", &DefaultStoreError{Variable: name}
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

// File is the path in the URL of a SQLite store.
func File(url string) (path string, ok bool) {
	path, ok = strings.CutPrefix(url, "sqlite:")
	return strings.TrimPrefix(path, "//"), ok
}

// Text is the URL of a store, "" being the implicit one.
func Text(url string) string {
	if url != "" {
		return url
	}
	path, err := Default()
	if err != nil {
		return "the default"
	}
	return "sqlite:" + path
}

// Texts is the URL of the stores of a series, without secrets.
func Texts(s *config.Series) string {
	var all []string
	for _, url := range s.URLs {
		all = append(all, open.Redact(Text(url)))
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
