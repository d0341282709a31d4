// Package opening finds the pool of a process, or creates the first pool of an embedded store, and
// decides whether the process may lease a worker of it. Package lease and the simulation run it, each
// on a store of its own.
package opening

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// An Opening is how a process opens its pool, before it leases a worker of it.
type Opening struct {
	Pool   string
	Layout firn.Layout // that the pool should have; zero: any

	// Create says how the first pool of an embedded store is created: together with the store,
	// by whichever process comes first.
	Create pool.Options

	// Saved returns what a process before this one knew of the store, and the pool's layout. ok
	// says that its grant can be continued, so that this one can start without the store.
	Saved func() (p store.Durability, l firn.Layout, ok bool)
}

// Open asks the store whether it can lose writes, and looks for the pool. Where the store
// does not answer and there is a grant to continue, the view is not known and the pool's Info
// has the layout alone. asked is the boot time.
func (o *Opening) Open(ctx context.Context, s store.Store, asked time.Duration) (seen term.View, info pool.Info, err error) {
	seen = term.View{Asked: asked, Known: true}
	if seen.Durability, err = s.Durability(ctx); err == nil {
		info, err = o.find(ctx, s, seen.Durability.NoticesLoss)
	}
	if err == nil && o.Layout.IsValid() && o.Layout != info.Layout {
		err = &term.LayoutError{Pool: o.Pool, Have: info.Layout.String(), Want: o.Layout.String()}
	}
	if err == nil || Answered(err) {
		return seen, info, err
	}
	p, l, ok := o.Saved()
	if !ok {
		return seen, info, err
	}
	return term.View{Asked: asked, Durability: p}, pool.Info{Name: o.Pool, Layout: l}, nil
}

// find returns the pool. That of an embedded store without any pool is created.
func (o *Opening) find(ctx context.Context, s store.Store, embedded bool) (pool.Info, error) {
	info, err := pool.Show(ctx, s, o.Pool)
	var missing *term.MissingPoolError
	if !errors.As(err, &missing) || !embedded || len(missing.Pools) > 0 {
		return info, err
	}
	info, err = pool.Create(ctx, s, o.Pool, &o.Create)
	var exists *pool.ExistsError
	if errors.As(err, &exists) { // another process was first
		return exists.Info, nil
	}
	return info, err
}

// Answered reports whether an error of Open is what the store answered, or follows from that.
// No process continues a grant then: what was granted may be somebody else's by now.
func Answered(err error) bool {
	return isA[*term.MissingPoolError](err) || isA[*term.LayoutError](err) ||
		isA[*pool.RemainsError](err) || isA[*pool.OverlapError](err) || isA[*pool.OptionError](err) ||
		isA[*store.ForgotError](err) || isA[*store.OtherStoreError](err) || isA[*store.FormatError](err)
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
