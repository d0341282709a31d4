package document

import (
	"context"
	"errors"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Show returns the series of that name, or a [*MissingError] if the store has none.
func Show(ctx context.Context, st store.Store, name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	rec, err := st.Get(ctx, dated.Key(name))
	if err != nil {
		return Info{}, err
	}
	if rec.Version == "" {
		return Info{}, &MissingError{Series: name}
	}
	counters, err := st.List(ctx, dated.Key(name)+"/")
	if err != nil {
		return Info{}, err
	}
	all, err := infos(append([]store.Record{rec}, counters...))
	if err != nil {
		return Info{}, err
	}
	return all[0], nil
}

// withNames adds to a [*MissingError] which series there are, where the store says it.
func withNames(ctx context.Context, st store.Store, err error) error {
	var none *MissingError
	if !errors.As(err, &none) {
		return err
	}
	list, failed := List(ctx, st)
	if failed != nil {
		return err
	}
	full := &MissingError{Series: none.Series, Names: make([]string, len(list))}
	for i, one := range list {
		full.Names[i] = one.Name
	}
	full.Nearest = nearest.Name(full.Series, full.Names)
	if full.MayBeLost, failed = record.MayHaveLost(ctx, st); failed != nil {
		return err
	}
	return full
}
