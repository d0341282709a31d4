package countername

import (
	"context"
	"errors"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// CheckCounter returns an error if a store lacks the counter and nobody is about to begin it, or has
// it with other settings, so that to open it would be refused. It writes nothing.
func CheckCounter(ctx context.Context, st store.Store, d *config.Series, durability store.Durability) error {
	missing, err := fits(ctx, st, d)
	if err != nil || !missing {
		return err
	}
	lost, err := MayHaveLost(ctx, st)
	if err != nil {
		return err
	}
	var names []string
	if d.Kind == config.Document {
		all, failed := document.List(ctx, st)
		for _, one := range all {
			names = append(names, one.Name)
		}
		err = errors.Join(failed, &document.MissingError{Series: d.Defined(), Names: names, Nearest: nearest.Name(d.Defined(), names), MayBeLost: lost})
	} else {
		all, failed := sequence.List(ctx, st)
		for _, one := range all {
			names = append(names, one.Name)
		}
		err = errors.Join(failed, &sequence.MissingError{Name: d.Name, Names: names, Nearest: nearest.Name(d.Name, names), MayBeLost: lost})
	}
	if !durability.NoticesLoss {
		return cause.Elsewhere(ctx, st, err)
	}
	// A file of this host begins its counters by itself, but not one that may have lost some.
	if lost {
		return err
	}
	if err := CheckNew(ctx, st, d); err != nil || d.Kind != config.Document {
		return err
	}
	return document.CheckNew(ctx, st, d.Defined(), &d.Options.Document)
}

// fits reports whether a store lacks the counter. If it has it, an error says which setting the
// counter was created with, where the series has another.
func fits(ctx context.Context, st store.Store, d *config.Series) (missing bool, err error) {
	if d.Kind == config.Document {
		in, err := document.Show(ctx, st, d.Defined())
		if err == nil {
			err = d.Options.Document.Agrees(in)
		}
		if errors.As(err, new(*document.MissingError)) {
			return true, nil
		}
		return false, err
	}
	in, err := sequence.Show(ctx, st, d.Name)
	if err == nil && in.Err == nil {
		err = d.Options.Sequence.Agrees(in)
	}
	if errors.As(err, new(*sequence.MissingError)) {
		return true, nil
	}
	return false, err
}
