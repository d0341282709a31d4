package sequence

import (
	"context"
	"errors"
	"strings"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Show returns the series of that name, or a [*MissingError] if the store has none.
func Show(ctx context.Context, st store.Store, name string) (Info, error) {
	if reason := record.CheckName("series", name, maxSeries); reason != "" {
		return Info{}, &OptionError{"name", reason}
	}
	rec, err := st.Get(ctx, block.Key(name))
	if err != nil {
		return Info{}, err
	}
	if rec.Version == "" {
		return Info{}, &MissingError{Name: name}
	}
	return info(rec), nil
}

// withNames adds to a [*MissingError] which series there are, where the store says it.
func withNames(ctx context.Context, st store.Store, err error) error {
	var none *MissingError
	if !errors.As(err, &none) {
		return err
	}
	list, failed := st.List(ctx, block.Keys)
	if failed != nil {
		return err
	}
	full := &MissingError{Name: none.Name, Names: make([]string, len(list))}
	for i, rec := range list {
		full.Names[i] = strings.TrimPrefix(rec.Key, block.Keys)
	}
	full.Nearest = nearest.Name(full.Name, full.Names)
	if full.MayBeLost, failed = record.MayHaveLost(ctx, st); failed != nil {
		return err
	}
	return full
}
