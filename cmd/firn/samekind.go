package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// This file is about series whose kind in firn.yaml is not that of the counter that the store
// has by their name. An id in the place of a number is wrong, however unique; and a counter of
// the other kind would hide the one that is there.

// A kindError says that the store has a counter of another kind.
type kindError struct{ name, want, have string }

func (e *kindError) Error() string {
	return fmt.Sprintf("series %s cannot be of kind %s: the store has a %s of that name", e.name, e.want, e.have)
}

// sameKind returns an error if a store has a counter of the series' name and of another kind.
func (d *drawing) sameKind(ctx context.Context, st store.Store) error {
	there, err := counterIn(ctx, st, d.name)
	if err != nil || there == nil || there.kind == d.kind {
		return err
	}
	f := bad("%w", &kindError{d.name, d.kind, there.kind})
	switch {
	case !d.listed:
		return f.hint("to serve this store: list the series of the server in firn.yaml, %s with kind: %s or not at all", d.name, there.kind)
	case there.kind == kindSerial:
		return f.hint("to draw from the counter, write in firn.yaml: %s: { kind: serial, pattern: %q%s }", d.name, there.pattern, zoneKey(there.zone)).
			hint("to have a %s beside it, give the series in firn.yaml another name", d.kind)
	case there.kind == kindTicket:
		return f.hint("to draw from the counter, write in firn.yaml: %s: { kind: ticket, stores: [URL, URL] }, with the stores that it was created with", d.name).
			hint("to have a %s beside it, give the series in firn.yaml another name", d.kind)
	}
	return f.hint("to draw from the counter, write in firn.yaml: %s: { kind: %s }", d.name, there.kind).
		hint("to have a %s beside it, give the series in firn.yaml another name", d.kind)
}

func zoneKey(zone string) string {
	if zone == "" {
		return ""
	}
	return ", zone: " + zone
}

// flakesAgree returns an error if the store has a counter of the name that a flake of the plan
// has. Flakes of one pool share a supply, so that opening it does not tell. A store that does
// not answer says nothing: ids go on without it.
func (p *servePlan) flakesAgree(ctx context.Context, stores *sharedStores) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for _, d := range p.series {
		if d.kind != kindFlake {
			continue
		}
		u, err := stores.enter(ctx, d.urls[0])
		if err != nil {
			return nil
		}
		err = errors.Join(d.sameKind(ctx, u.store), stores.leave(u))
		var f *failure
		switch {
		case errors.As(err, &f):
			return f
		case err != nil:
			return nil
		}
	}
	return nil
}
