package open

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn/store/sqlite"
)

func openSQLite(path string) func(context.Context) (*Store, error) {
	return func(ctx context.Context) (*Store, error) {
		s, err := sqlite.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		return &Store{Store: s, close: s.Close}, nil
	}
}

// sqlitePath returns the path in what follows "sqlite:".
func sqlitePath(rest string) (string, error) {
	path := strings.TrimPrefix(rest, "//")
	switch {
	case path == "":
		return "", fmt.Errorf("no path; it is sqlite:PATH")
	case strings.Contains(path, "?"):
		return "", fmt.Errorf("there are no options, and a path with a ? is not supported")
	case !filepath.IsAbs(path):
		_, err := sqlite.Inspect(path) // says which file is meant
		return "", errors.New(strings.TrimPrefix(err.Error(), "store/sqlite: "))
	}
	return path, nil
}
