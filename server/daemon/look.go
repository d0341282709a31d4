package daemon

import (
	"context"
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// needsSIGHUP reports whether an error of opening ends the looking: the server opens the supply
// only when somebody says by SIGHUP, or by a restart, that the cause is mended.
//
//   - A store that lost writes, was replaced, or has lost a pool: a backup that is put back
//     looks sound, and ids from it repeat until firn store recover has run.
//   - A record that this program cannot read: the cure is a backup, or a newer program.
//   - Settings of the server, and a layout that differs from the pool's, which never changes:
//     the server reads its settings at SIGHUP.
//   - A layout whose time is over.
func needsSIGHUP(err error) bool {
	return isA[*store.ForgotError](err) || isA[*store.OtherStoreError](err) || isA[*document.InstanceError](err) || isA[*open.LostPoolError](err) ||
		isA[*store.FormatError](err) ||
		isA[*lease.OptionError](err) || isA[*lease.LayoutError](err) || isA[*fromurl.URLError](err) ||
		isA[*firn.EndError](err)
}

// look returns an error if a store lacks what the drawing draws from. It creates nothing, also
// in a file of this host, where to open a series may begin it.
//
// A document that has given nothing is an [*UnusedError]: an operator who has lost one creates it again
// and then raises it, and what it gave in between would be given twice. A document that a recovery
// raised was there before: it continues above what it may have given. A sequence is created at
// the number that it begins with, and a pool with the time.
func (d *outlet) look(ctx context.Context, shared *sharedStores) error {
	for _, url := range d.URLs {
		u, err := shared.enter(ctx, url)
		if err != nil {
			return whichstore.At(d.Series, url, err)
		}
		if d.Kind == config.Flake {
			_, err = pool.Show(ctx, u.watched(), d.Leasing.Pool)
		} else {
			err = countername.CheckCounter(ctx, u.watched(), d.Series, store.Durability{})
		}
		if err == nil && d.Kind == config.Document {
			err = d.given(ctx, u.watched())
		}
		if err = errors.Join(err, shared.leave(u)); err != nil {
			return err
		}
	}
	return nil
}

// given returns an error if a document has given nothing yet, and no recovery has raised it.
func (d *outlet) given(ctx context.Context, st store.Store) error {
	info, err := document.Show(ctx, st, d.Name)
	if err != nil || info.Count > 0 || info.Names > 0 || info.Raised {
		return err
	}
	return &UnusedError{d.Name}
}

// passes reports whether an error of a supply passes by itself. Here the deadline of one try
// does, and so does the end of a supply that is being replaced.
func passes(err error) bool {
	return firn.Retryable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, firn.ErrClosed)
}
