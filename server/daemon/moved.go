package daemon

import (
	"errors"
	"slices"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/pool"
)

// This file is about a reload that leads to another store, or to one that lost something. Where it
// lacks what the server draws from, the address is mistyped or the store is empty: what is
// created there by hand would repeat what the server has given.

// mayCreate reports whether a reload may create what a drawing of the next config draws from: a pool
// or a counter that the server does not have, in a store that it uses. Any other would begin again.
func (p *plan) mayCreate(next *outlet) bool {
	uses := false
	for _, d := range p.drawings() {
		if d.source() == next.source() {
			return false
		}
		uses = uses || d.storeText() == next.storeText()
	}
	return uses
}

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
