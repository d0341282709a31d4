package open

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// A NoStoreError says that the file of a store is not there.
type NoStoreError struct{ URL string }

func (e *NoStoreError) Error() string { return "there is no store " + e.URL }

// Retryable is false: somebody has to name another store, or put this one back; see firn.Retryable.
func (*NoStoreError) Retryable() bool { return false }

// An OnMade is told of a SQLite file that was made, and whether it is the implicit one.
type OnMade func(path string, implicit bool)

// Store opens the store of a URL; "" is the default file of this user. A file that is not
// there is made, and made is told of it; where made is nil, the file has to be there.
func Store(ctx context.Context, url string, made OnMade) (*open.Store, error) {
	implicit := url == ""
	if implicit {
		path, err := whichstore.Default()
		if err != nil {
			return nil, err
		}
		url = "sqlite:" + path
	}
	if err := config.CheckStore(url); err != nil {
		return nil, err
	}
	path, embedded := whichstore.File(url)
	if embedded && made == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &NoStoreError{url}
		}
	}
	if implicit && made != nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			_, there := os.Stat(filepath.Dir(path))
			return nil, &whichstore.DefaultStoreError{Err: err, NoHome: errors.Is(there, fs.ErrNotExist)}
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
