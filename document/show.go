package document

import (
	"context"
	"errors"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/store"
)

// Show returns the series of that name, or a [*MissingError] if the store has none. Of a template it says
// how many names there are, and of a name of a template where its counters are.
func Show(ctx context.Context, st store.Store, name string) (Info, error) {
	at, rec, err := locate(ctx, st, name)
	if err != nil {
		return Info{}, err
	}
	if at.Template != "" {
		there, err := st.Get(ctx, at.Record())
		if err != nil {
			return Info{}, err
		}
		if there.Version == "" {
			return Info{}, &MissingError{Series: name, Template: at.Template}
		}
	}
	def, err := record.Read[dated.Definition](rec)
	if err != nil {
		return Info{}, err
	}
	info := newInfo(at, def, rec.Read)
	if template.Is(name) {
		names, err := st.List(ctx, dated.NamesOf(name))
		info.Names = len(names)
		return info, err
	}
	counters, err := st.List(ctx, at.Counters())
	for _, c := range counters {
		if err == nil {
			err = info.add(&def, c)
		}
	}
	return info, err
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
	full := &MissingError{Series: none.Series, Template: none.Template, Names: make([]string, len(list))}
	for i, one := range list {
		full.Names[i] = one.Name
	}
	full.Nearest = nearest.Name(full.Series, full.Names)
	if full.MayBeLost, failed = record.MayHaveLost(ctx, st); failed != nil {
		return err
	}
	return full
}
