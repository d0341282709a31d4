package segment

import (
	"context"

	"github.com/firn-id/firn/store"
)

// Show returns the series of that name, or a [*NoSeriesError] if the store has none.
func Show(ctx context.Context, st store.Store, name string) (Info, error) {
	if reason := checkName(name); reason != "" {
		return Info{}, &OptionError{"name", reason}
	}
	rec, err := st.Get(ctx, key(name))
	if err != nil {
		return Info{}, err
	}
	if rec.Version == "" {
		return Info{}, &NoSeriesError{Name: name}
	}
	return info(rec), nil
}
