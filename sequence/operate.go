package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

// ErrExists: there is a series of that name already.
var ErrExists = errors.New("sequence: the series is there already")

// Create writes down a series that there never was. Only somebody who knows that
// calls it: a store that has forgotten a series looks the same.
//
// Errors: [ErrExists], [*store.OtherStoreError], this store is a copy; [*MismatchError] where it is there over another number of
// stores, [*LossyError], [*OptionError]s, and the store's, after which it may or may
// not be there; Create again then.
func Create(ctx context.Context, st store.Store, name string, opts *Options) error {
	return CreateAcross(ctx, []store.Store{st}, name, opts)
}

// CreateAcross writes down a series over several stores, all of which have to
// answer. One that an earlier call has begun, and nobody has drawn from, is
// completed, in whatever order they are named. Errors are those of [Create].
func CreateAcross(ctx context.Context, stores []store.Store, name string, opts *Options) error {
	o := opts.withDefaults()
	if len(stores) < 1 || len(stores) > MaxStores {
		return &OptionError{"stores", fmt.Sprintf("stores: a series is spread over 1 to %d, not %d", MaxStores, len(stores))}
	}
	if err := o.validate(name, len(stores)); err != nil {
		return err
	}
	k := len(stores)
	r := o.record()
	r.ID = newID()
	if k > 1 {
		r.Stores, r.Pending = int64(k), true
	}
	missing, pending := 0, 0
	offsets := make([]int, k)
	var taken [MaxStores]bool
	for i, st := range stores {
		if err := CheckStore(ctx, st); err != nil {
			return of(k, i, err)
		}
		have, err := read(ctx, st, name)
		switch {
		case err != nil:
			return of(k, i, err)
		case have.ID == "":
			missing++
			offsets[i] = -1
			continue
		case max(have.Stores, 1) != int64(k):
			return of(k, i, &MismatchError{name, "stores", fmt.Sprint(max(have.Stores, 1)), fmt.Sprint(k)})
		case have.Pending:
			pending++
		}
		r.ID, offsets[i], taken[have.Offset] = have.ID, int(have.Offset), true
	}
	switch known := k - missing - pending; {
	case known > 0 && missing > 0:
		return &store.ForgotError{Store: "series " + name, What: fmt.Sprintf("%d of its %d stores have no record of it", missing, k)}
	case known == k:
		return fmt.Errorf("%w: %q", ErrExists, name)
	}
	for i, st := range stores {
		if offsets[i] < 0 { // what was begun may have been in another order
			offsets[i] = slices.Index(taken[:], false)
			taken[offsets[i]] = true
		}
		r.Offset = int64(offsets[i])
		if err := create(ctx, st, name, r.New(), o); err != nil {
			return of(k, i, err)
		}
	}
	if k == 1 {
		return nil
	}
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
			return of(k, i, err)
		}
	}
	return nil
}

// of says of which store an error is, where there are several.
func of(stores, i int, err error) error {
	if stores == 1 {
		return err
	}
	return fmt.Errorf("store %d of %d: %w", i+1, stores, err)
}

// read reads a series' record; the zero one where there is none.
func read(ctx context.Context, st store.Store, name string) (block.Record, error) {
	rec, err := st.Get(ctx, key(name))
	if err != nil {
		return block.Record{}, err
	}
	return block.Read(rec)
}

// create writes the record of one store, or finds the same there.
func create(ctx context.Context, st store.Store, name string, r block.Record, o Options) error {
	p, err := st.Durability(ctx)
	if err != nil {
		return err
	}
	if !p.Durable {
		if !o.Lossy {
			return &LossyError{Name: name, Why: p.Why}
		}
		r.Instance = p.Instance
	}
	r.By, r.Store = o.Name, p.Identity
	rec, err := st.Put(ctx, key(name), r.Encode(), store.Condition{})
	if err == nil && r.Store == "" {
		return note(ctx, st, name)
	}
	if err == nil || !errors.Is(err, store.ErrConflict) && rec.Version == "" {
		return err
	}
	there, e := st.Get(ctx, key(name))
	switch {
	case e != nil:
		return errors.Join(err, e)
	case there.Version == "":
		return err
	case rec.Version != "" && there.Version == rec.Version:
		return nil
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
	return fmt.Errorf("%w: %q", ErrExists, name)
}

// Info is what a store has of a series.
type Info struct {
	Name      string
	First     firn.ID
	Max       firn.ID
	Increment int64
	Granted   firn.ID // nobody is granted a number up to it any more; below First none was
	Left      int64   // how many numbers can still be granted
	Step      int64   // how many a process reserves at a time, at least
	Strict    bool
	Lossy     bool
	Instance  string    // of the lossy store it goes on under
	Store     string    // the store that it was made in; empty where nobody has noted it
	Stores    int       // it is spread over so many
	Offset    int       // of this store, 0 to Stores-1
	Rate      float64   // numbers granted in a second, over the last minute
	LastRate  float64   // numbers granted in a second, over the minute before At
	At        time.Time // of the last grant, by the clock of who was granted it; zero: none yet
	By        string    // name of that process
	Err       error     // the record cannot be read: a *store.FormatError; the rest is unset then
}

// List returns the series of a store, by name.
func List(ctx context.Context, st store.Store) ([]Info, error) {
	list, err := st.List(ctx, KeyPrefix)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(list))
	for i, rec := range list {
		infos[i] = info(rec)
	}
	return infos, nil
}

func info(rec store.Record) Info {
	name := strings.TrimPrefix(rec.Key, KeyPrefix)
	r, err := block.Read(rec)
	if err != nil {
		return Info{Name: name, Err: err}
	}
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	return Info{
		Name: name, First: firn.ID(r.First), Max: firn.ID(r.Max), Increment: max(r.Increment, 1),
		Granted: firn.ID(max(r.Granted, 0)), Left: r.Left(), Step: r.Step, Strict: r.Strict, Lossy: r.Lossy,
		Instance: r.Instance, Store: r.Store, Stores: int(max(r.Stores, 1)), Offset: int(r.Offset), Rate: r.RateAt(now), LastRate: r.Rate, At: r.At, By: r.By,
	}
}

// SetStep changes the step of a series. Every process follows at its next
// reservation. A [*store.OtherStoreError] says that this store is a copy.
func SetStep(ctx context.Context, st store.Store, name string, step int) (Info, error) {
	if step < 1 || step > MaxStep {
		return Info{}, &OptionError{"step", fmt.Sprintf("step %d: it is 1 to %d", step, MaxStep)}
	}
	if err := CheckStore(ctx, st); err != nil {
		return Info{}, err
	}
	return change(ctx, st, name, func(r block.Record) (block.Record, error) {
		r.Step = int64(step)
		r.Writes++
		return r, nil
	})
}

// Raise makes sure that nobody is granted a number up to n any more. Numbers that
// processes have in hand are still issued. It never lowers anything, so what is
// skipped by mistake is lost: ask before a long way. An n above which the series has
// no number is refused with an [*OptionError], and a store that is a copy with a
// [*store.OtherStoreError].
func Raise(ctx context.Context, st store.Store, name string, n firn.ID) (Info, error) {
	if err := CheckStore(ctx, st); err != nil {
		return Info{}, err
	}
	return change(ctx, st, name, func(r block.Record) (block.Record, error) {
		switch {
		case int64(n) > r.Max:
			return r, &OptionError{"to", fmt.Sprintf("to %d: the series' max is %d", n, r.Max)}
		case int64(n) <= r.Granted:
			return r, &OptionError{"to", fmt.Sprintf("to %d: numbers up to %d were granted already", n, r.Granted)}
		}
		if r = r.Raised(int64(n)); r.Left() == 0 {
			return r, &OptionError{"to", fmt.Sprintf("to %d: the series' max is %d, and no number would be left", n, r.Max)}
		}
		return r, nil
	})
}

// change replaces a record by what f makes of it, trying again where somebody
// else was faster.
func change(ctx context.Context, st store.Store, name string, f func(block.Record) (block.Record, error)) (Info, error) {
	for {
		rec, err := st.Get(ctx, key(name))
		if err != nil {
			return Info{}, err
		}
		if rec.Version == "" {
			return Info{}, withNames(ctx, st, &MissingError{Name: name})
		}
		r, err := block.Read(rec)
		if err != nil {
			return Info{}, err
		}
		if r, err = f(r); err != nil {
			return Info{}, err
		}
		wrote, err := st.Put(ctx, rec.Key, r.Encode(), store.Condition{Version: rec.Version})
		switch {
		case err == nil:
			wrote.Key, wrote.Value = rec.Key, r.Encode()
			return info(wrote), nil
		case !errors.Is(err, store.ErrConflict):
			return Info{}, fmt.Errorf("sequence: series %q may or may not be changed: %w", name, err)
		}
	}
}

// Recover makes the series of a store usable again that has forgotten what it
// acknowledged: it raises what was granted, be it handed back since, by a margin, or by what
// each says of a series, and accepts the store and its instance as they are now. The margin has to be above what can have been granted
// and forgotten of any series; only who runs the store knows how much that is.
// More than a series has left leaves it none, for ever: [PlanRecovery] tells before.
// Cut every process off the store first, and let them back in when it has
// returned. It may be repeated, and is to be after an error: it raises again. A
// series that the store has forgotten altogether does not begin again by itself.
func Recover(ctx context.Context, st store.Store, margin int64, each map[string]int64) ([]Info, error) {
	if err := checkMargins(margin, each); err != nil {
		return nil, err
	}
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := st.Get(ctx, KeyRestored)
	if err == nil && rec.Version == "" {
		_, err = st.Put(ctx, KeyRestored, []byte(`{"v":1}`), store.Condition{})
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return nil, err
	}
	list, err := st.List(ctx, KeyPrefix)
	if err != nil {
		return nil, err
	}
	var done []Info
	for _, rec := range list {
		name := strings.TrimPrefix(rec.Key, KeyPrefix)
		in, err := change(ctx, st, name, func(r block.Record) (block.Record, error) {
			r = restored(r, marginOf(name, margin, each))
			r.Instance, r.Store = "", p.Identity
			if !p.Durable {
				r.Instance = p.Instance
			}
			return r, nil
		})
		if err != nil {
			return done, err
		}
		done = append(done, in)
	}
	return done, nil
}

// PlanRecovery returns the series as [Recover] would leave them. It writes nothing.
func PlanRecovery(ctx context.Context, st store.Store, margin int64, each map[string]int64) ([]Info, error) {
	if err := checkMargins(margin, each); err != nil {
		return nil, err
	}
	list, err := st.List(ctx, KeyPrefix)
	if err != nil {
		return nil, err
	}
	var plan []Info
	for _, rec := range list {
		r, err := block.Read(rec)
		if err != nil {
			return nil, err
		}
		rec.Value = restored(r, marginOf(strings.TrimPrefix(rec.Key, KeyPrefix), margin, each)).Encode()
		plan = append(plan, info(rec))
	}
	return plan, nil
}

func checkMargins(margin int64, each map[string]int64) error {
	for _, own := range each {
		margin = min(margin, own)
	}
	if margin < 1 {
		return &OptionError{"margin", fmt.Sprintf("margin %d: it is at least 1", margin)}
	}
	return nil
}

func marginOf(name string, margin int64, each map[string]int64) int64 {
	if own, ok := each[name]; ok {
		return own
	}
	return margin
}

// restored is a record raised by a margin.
func restored(r block.Record, margin int64) block.Record {
	// What was handed back since the store went back is not part of the margin.
	r = r.Raised(r.Reached)
	r.Reached = 0
	to := r.Max
	if margin < r.Left() && r.Granted+margin*r.Stride() > 0 {
		to = r.Granted + margin*r.Stride()
	}
	return r.Raised(to)
}
