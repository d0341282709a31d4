package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Create creates a series that never existed; its numbers begin with Options.First. The
// caller states that no series of this name ever existed in this store, nor in one that this
// was copied or restored from: otherwise numbers would be issued again, and nothing can
// notice that. So a program does not call it when it starts; the step that creates the
// database does, once.
//
// Errors: [*ExistsError], the series is there; [*MismatchError], it is there over another
// number of stores; [*LostError], the store may have lost the series;
// [*store.OtherStoreError], this store is a copy; [*LossyError];
// [*OptionError]s; and the store's, after which the series may or may not be there: call
// Create again.
func Create(ctx context.Context, st store.Store, name string, opts *Options) (Info, error) {
	return CreateAcross(ctx, []store.Store{st}, name, opts)
}

// CreateAcross creates a series over several stores, all of which have to answer. A series
// that an earlier call began to create, and nobody has drawn from, is completed, in whatever
// order the stores are named. The Info is that of the first store. Errors are those of
// [Create].
func CreateAcross(ctx context.Context, stores []store.Store, name string, opts *Options) (Info, error) {
	o := opts.withDefaults()
	if len(stores) < 1 || len(stores) > block.MaxStores {
		return Info{}, &OptionError{"stores", fmt.Sprintf("stores: a series is spread over 1 to %d, not %d", block.MaxStores, len(stores))}
	}
	if err := o.validate(name, len(stores)); err != nil {
		return Info{}, err
	}
	r, offsets, err := o.plan(ctx, stores, name)
	if err != nil {
		return Info{}, err
	}
	for i, st := range stores {
		r.Offset = int64(offsets[i])
		if err := create(ctx, st, name, r.New(), o); err != nil {
			return Info{}, of(len(stores), i, err)
		}
	}
	if len(stores) > 1 {
		// Only now that all have it may any be drawn from: a store that lacks it
		// later is one that has forgotten.
		for i, st := range stores {
			if _, err := change(ctx, st, name, func(r block.Record) (block.Record, error) {
				if r.Pending {
					r.Pending = false
					r.Writes++
				}
				return r, nil
			}); err != nil {
				return Info{}, of(len(stores), i, err)
			}
		}
	}
	return Show(ctx, stores[0], name)
}

// plan looks at what the stores have of a series, and returns the record to write, but for
// the offset, and the offset of each store.
func (o *Options) plan(ctx context.Context, stores []store.Store, name string) (r block.Record, offsets []int, err error) {
	k := len(stores)
	r = o.record()
	r.ID = record.NewID()
	if k > 1 {
		r.Stores, r.Pending = int64(k), true
	}
	missing, pending, mayHaveLost := 0, 0, false
	offsets = make([]int, k)
	var taken [block.MaxStores]bool
	var there store.Record
	for i, st := range stores {
		if err := checkStore(ctx, st); err != nil {
			return r, nil, of(k, i, err)
		}
		rec, err := st.Get(ctx, block.Key(name))
		if err != nil {
			return r, nil, of(k, i, err)
		}
		have, err := block.Read(rec)
		switch {
		case err != nil:
			return r, nil, of(k, i, err)
		case have.ID == "":
			lost, err := record.MayHaveLost(ctx, st)
			if err != nil {
				return r, nil, of(k, i, err)
			}
			mayHaveLost = mayHaveLost || lost
			missing++
			offsets[i] = -1
			continue
		case max(have.Stores, 1) != int64(k):
			return r, nil, of(k, i, &MismatchError{name, "stores", fmt.Sprint(max(have.Stores, 1)), fmt.Sprint(k)})
		case have.Pending:
			pending++
		}
		there, r.ID, offsets[i], taken[have.Offset] = rec, have.ID, int(have.Offset), true
	}
	switch known := k - missing - pending; {
	case known > 0 && missing > 0:
		return r, nil, &store.ForgotError{Store: "series " + name, What: fmt.Sprintf("%d of its %d stores have no record of it", missing, k)}
	case known == k:
		return r, nil, &ExistsError{info(there)}
	case missing == k && mayHaveLost && o.First == 0 && !o.New:
		return r, nil, &LostError{name}
	}
	for i := range offsets {
		if offsets[i] < 0 { // what was begun may have been in another order
			offsets[i] = slices.Index(taken[:], false)
			taken[offsets[i]] = true
		}
	}
	return r, offsets, nil
}

// of says of which store an error is, where there are several.
func of(stores, i int, err error) error {
	if stores == 1 {
		return err
	}
	return fmt.Errorf("store %d of %d: %w", i+1, stores, err)
}

// create writes the record of one store, or finds the same there.
func create(ctx context.Context, st store.Store, name string, r block.Record, o Options) error {
	p, err := st.Durability(ctx)
	if err != nil {
		return err
	}
	if !p.Durable {
		if !o.MayRepeat {
			return &LossyError{Name: name, Why: p.Why}
		}
		r.Instance = p.Instance
	}
	r.By, r.Store = o.Name, p.Identity
	there, err := record.Create(ctx, st, block.Key(name), r.Encode())
	switch {
	case err == nil && r.Store == "":
		return note(ctx, st, name)
	case !errors.Is(err, store.ErrConflict) || there.Version == "":
		return err
	}
	have, err := block.Read(there)
	if err != nil {
		return err
	}
	// Of one store, another's is another series. Of several, it may be a part of
	// this one that an earlier call has written.
	if r.Stores > 0 && have.ID == r.ID && have.Offset == r.Offset && have.Stores == r.Stores &&
		have.First == r.First && have.Max == r.Max && max(have.Increment, 1) == max(r.Increment, 1) {
		return nil
	}
	if have.ID == r.ID && have.Offset != r.Offset {
		return sameOffset(name, have.Offset)
	}
	return &ExistsError{info(there)}
}
