package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
)

// An elsewhereError says that what the store lacks may be in another schema of its database,
// which the search_path of this role does not name.
type elsewhereError struct {
	error
	path             string
	missing, schemas []string
}

func (e *elsewhereError) Unwrap() error { return e.error }

// hint says where to look before anything is created.
func (e *elsewhereError) hint() string {
	text := fmt.Sprintf("the search_path here is %s", e.path)
	if len(e.missing) > 0 {
		text += ", and there is no schema " + strings.Join(e.missing, ", ")
	}
	if len(e.schemas) == 0 {
		return text + ". If a name is mistyped, correct it, and create nothing"
	}
	return fmt.Sprintf("%s. Schema %s has a table firn_records: if that is the store, name its schema in the URL (search_path=%s), and create nothing",
		text, strings.Join(e.schemas, ", "), e.schemas[0])
}

// errNoTable is about a database whose search_path finds no table of firn.
var errNoTable = errors.New("no table firn_records")

// elsewhere adds to the error of a store that lacks a pool or a counter where else it may be.
func elsewhere(ctx context.Context, s store.Store, err error) error {
	type finder interface {
		Elsewhere(ctx context.Context) (searchPath string, missing, schemas []string, err error)
	}
	for s != nil {
		if f, ok := s.(finder); ok {
			path, missing, schemas, failed := f.Elsewhere(ctx)
			if failed != nil || len(missing)+len(schemas) == 0 {
				return err
			}
			return &elsewhereError{err, path, missing, schemas}
		}
		u, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			return err
		}
		s = u.Unwrap()
	}
	return err
}

// elsewhereFirst puts the hint of an [*elsewhereError] before those that offer to create.
func elsewhereFirst(err error, f *ui.Failure) *ui.Failure {
	var e *elsewhereError
	if f == nil || !errors.As(err, &e) {
		return f
	}
	hints := f.Hints
	f.Hints = nil
	f.Hint("%s", e.hint())
	f.Hints = append(f.Hints, hints...)
	return f
}
