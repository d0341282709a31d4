package cause

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
)

// An ElsewhereError says that what the store lacks may be in another schema of its database: the
// search_path of this role names schemas that do not exist.
type ElsewhereError struct {
	error
	Path    string
	Missing []string
}

func (e *ElsewhereError) Unwrap() error { return e.error }

// ErrNoTable is about a database whose search_path finds no table of firn.
var ErrNoTable = errors.New("no table firn_records")

// Elsewhere adds to the error of a store that lacks a pool or a counter where else it may be.
func Elsewhere(ctx context.Context, s store.Store, err error) error {
	type finder interface {
		Elsewhere(ctx context.Context) (searchPath string, missing []string, err error)
	}
	for s != nil {
		if f, ok := s.(finder); ok {
			path, missing, failed := f.Elsewhere(ctx)
			if failed != nil || len(missing) == 0 {
				return err
			}
			return &ElsewhereError{err, path, missing}
		}
		u, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			return err
		}
		s = u.Unwrap()
	}
	return err
}
