package record

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

// CheckStore returns a [*store.OtherStoreError] where a record under a prefix of keys says
// that it was made in another store, so that this one is a copy, a restored dump, or was
// moved: numbers that are granted by both are equal. It is nil where the store or the
// records cannot tell. What says what the records are of. CheckStore reads every record,
// and passes over those that it cannot read.
func CheckStore(ctx context.Context, st store.Store, prefix, what string) error {
	p, err := st.Durability(ctx)
	if err != nil || p.Identity == "" {
		return err
	}
	list, err := st.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, rec := range list {
		var made struct{ Store string }
		if json.Unmarshal(rec.Value, &made) != nil {
			continue
		}
		name := strings.TrimPrefix(rec.Key, prefix)
		if err := CheckOther(fmt.Sprintf("%s %q", what, name), p.Identity, made.Store); err != nil {
			return err
		}
	}
	return nil
}
