package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
)

// This file is about a server that is told to use another store than it does. Where that
// lacks what the server draws from, the address is mistyped or the store is empty: what is
// created there by hand would repeat what the server has given.

// leaves returns err as it is to be said of a drawing of the next config: where the server
// that runs has the same pool or counter in another store, the way back comes first, and
// nothing is offered that begins anew.
func (p *servePlan) leaves(next *drawing, err error) error {
	if err == nil || next == nil {
		return err
	}
	var remains *pool.RemainsError
	m := next.missingOf(err)
	if m == nil && !errors.As(err, new(*open.NoStoreError)) && !errors.As(err, &remains) {
		return err
	}
	i := slices.IndexFunc(p.drawings(), func(d *drawing) bool { return d.source() == next.source() })
	if i < 0 || slices.Equal(p.drawings()[i].URLs, next.URLs) {
		return err
	}
	var f *ui.Failure
	if !errors.As(next.explain(err), &f) {
		return err
	}
	what := cmp.Or(next.Name, "this server")
	if next.Kind == config.Flake {
		what = "pool " + next.Leasing.Pool
	}
	f = ui.Failed("%s", phrase.WithoutPackage(f.Error())).
		Hint("this server has %s in %s: write that store back into the config, then send SIGHUP again", what, p.drawings()[i].storeText())
	if m == nil || m.again == "" {
		return f
	}
	where, flag := "", ""
	if m.where != "" {
		where = ", with " + m.where
	}
	if next.Kind != config.Ticket { // whose stores are those of the config
		flag = storeFlag(open.StoreText(next.URLs[0]))
	}
	return f.Hint("only if %s is to be in %s from now on: stop every process that uses the other store, then: %s%s%s", what, next.storeText(), m.again, flag, where)
}

// source is the pool or the counter that a drawing is of, whatever store it is in.
func (d *drawing) source() string {
	if d.Kind == config.Flake {
		return "pool " + d.Leasing.Pool
	}
	return fmt.Sprintf("%s %s", d.Kind, d.Name)
}
