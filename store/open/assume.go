package open

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// declared is what the URL says of the store: durable or not; nil if it says nothing.
func declared(a *address) (*bool, error) {
	text, ok := a.take("assume")
	if !ok {
		return nil, nil
	}
	durable := text == "durable"
	if !durable && text != "lossy" {
		return nil, errors.New("assume is durable, lossy, or left out")
	}
	return &durable, nil
}

// A vouched store is as durable as its operator says.
type vouched struct {
	store.Store
	durable bool
}

// Durability is the store's own, with the operator's word for whether it is durable. A store
// that cannot be asked is nothing.
func (v *vouched) Durability(ctx context.Context) (store.Durability, error) {
	seen, err := v.Store.Durability(ctx)
	if err != nil {
		return seen, err
	}
	said := seen
	said.Durable = v.durable
	switch {
	case seen.Durable == v.durable:
		said.Why = fmt.Sprintf("%s; assume=%s in the URL changes nothing", seen.Why, said)
	case v.durable:
		said.Why = fmt.Sprintf("assume=durable in the URL: its operator vouches that no failover, crash or restart loses a write that was acknowledged, "+
			"and ids repeat if one does; what can be seen is %s: %s", seen, seen.Why)
	default:
		said.Why = fmt.Sprintf("assume=lossy in the URL: its operator does not rely on what can be seen, %s: %s", seen, seen.Why)
	}
	return said, nil
}
