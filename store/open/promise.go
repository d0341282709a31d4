package open

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// declared is the class that the URL says the store has, nil if it says none.
func declared(a *address) (*store.Class, error) {
	class := store.Lossy
	switch text, ok := a.take("promise"); {
	case !ok:
		return nil, nil
	case text == "durable":
		class = store.Durable
	case text != "lossy":
		return nil, errors.New("promise is durable, lossy, or left out")
	}
	return &class, nil
}

// A vouched store has the class that its operator says it has.
type vouched struct {
	store.Store
	class store.Class
}

// Promise is what the store promises, with the operator's word for the class. A
// store that cannot be asked promises nothing.
func (v *vouched) Promise(ctx context.Context) (store.Promise, error) {
	p, err := v.Store.Promise(ctx)
	if err != nil {
		return p, err
	}
	switch seen := p.Class; {
	case seen == v.class:
		p.Why = fmt.Sprintf("%s; promise=%s in the URL changes nothing", p.Why, v.class)
	case v.class == store.Durable:
		p.Why = fmt.Sprintf("promise=durable in the URL: its operator vouches that no failover, crash or restart loses a write that was acknowledged, "+
			"and ids repeat if one does; what can be seen is %s: %s", seen, p.Why)
	default:
		p.Why = fmt.Sprintf("promise=lossy in the URL: its operator does not rely on what can be seen, %s: %s", seen, p.Why)
	}
	p.Class = v.class
	return p, nil
}
