package serial

import (
	"context"

	"github.com/firn-id/firn/store"
)

// Show returns the series of that name, or a [*NoSeriesError] if the store has none.
func Show(ctx context.Context, st store.Store, name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	rec, err := st.Get(ctx, keySeries(name))
	if err != nil {
		return Info{}, err
	}
	if rec.Version == "" {
		return Info{}, &NoSeriesError{name}
	}
	counters, err := st.List(ctx, keySeries(name)+"/")
	if err != nil {
		return Info{}, err
	}
	all, err := infos(append([]store.Record{rec}, counters...))
	if err != nil {
		return Info{}, err
	}
	return all[0], nil
}
