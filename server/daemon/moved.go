package daemon

import (
	"errors"
	"slices"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/pool"
)

// This file is about a server that is told to use another store than it does. Where that
// lacks what the server draws from, the address is mistyped or the store is empty: what is
// created there by hand would repeat what the server has given.

// leaves returns err as it is to be said of a drawing of the next config: where the server
// that runs has the same pool or counter in another store, the way back comes first, and
// nothing is offered that begins anew.
func (p *plan) leaves(next *outlet, err error) error {
	if err == nil || next == nil {
		return err
	}
	var remains *pool.RemainsError
	if !lacks(err) && !errors.As(err, new(*open.NoStoreError)) && !errors.As(err, &remains) {
		return err
	}
	i := slices.IndexFunc(p.drawings(), func(d *outlet) bool { return d.source() == next.source() })
	if i < 0 || slices.Equal(p.drawings()[i].URLs, next.URLs) {
		return err
	}
	return &MovedError{next.Series, p.drawings()[i].storeText(), err}
}
