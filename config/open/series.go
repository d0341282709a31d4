package open

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/copied"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// Options say how a series is opened. A nil *Options is all defaults.
type Options struct {
	Logger   *slog.Logger           // what the series warns of; nil: it is discarded
	Hostname func() (string, error) // of this host; nil: os.Hostname

	// NextWait and Waiting are those of lease.Options.
	NextWait time.Duration
	Waiting  func(startsAt time.Time, why string)

	// Existing refuses a series that its store lacks. Without it a file of this host creates its
	// first pool, and each counter that it lacks.
	Existing bool
	About    int64 // how many numbers will be drawn: no more are in hand; 0: that is not known

	// Beginning is held while a counter is created. Of two documents that are created at the same
	// time neither sees that the other could give the same texts. Nil: no other is opened meanwhile.
	Beginning sync.Locker
}

// A Series is a series that is open: of lease, numbers and texts one is set, by its kind.
type Series struct {
	Lease   *lease.Lease     // of a flake
	Numbers *sequence.Series // of a sequence
	Texts   *document.Series // of a document
	Began   bool             // opening it has created the counter, or the first pool of a file
}

// Close gives back what the series holds. Its stores stay open.
func (o *Series) Close() error {
	switch {
	case o.Lease != nil:
		return o.Lease.Close()
	case o.Numbers != nil:
		return o.Numbers.Close()
	}
	return o.Texts.Close()
}

// OpenSeries opens a series on its stores, which are in the order of its URLs. Whoever has
// opened it closes it, and then the stores.
func OpenSeries(ctx context.Context, d *config.Series, stores []store.Store, o *Options) (*Series, error) {
	if o == nil {
		o = new(Options)
	}
	if err := checkStores(ctx, d, stores); err != nil {
		return nil, err
	}
	if o.Existing {
		if err := lacking(ctx, d, stores[0]); err != nil && !mayReturn(ctx, d, err) {
			return nil, err
		}
	}
	began, err := begins(ctx, d, stores)
	if err != nil {
		return nil, err
	}
	if began && o.Beginning != nil {
		o.Beginning.Lock()
		defer o.Beginning.Unlock()
	}
	s := &Series{Began: began}
	switch d.Kind {
	case config.Flake:
		s.Began = createsPool(ctx, stores[0], d.Leasing)
		s.Lease, err = openLease(ctx, stores[0], d.Leasing, o)
	case config.Document:
		options := d.Options.Document
		options.Logger = o.Logger
		s.Texts, err = document.Open(ctx, stores[0], d.Name, &options)
	default:
		options := o.numbers(d)
		if d.Across() {
			s.Numbers, err = sequence.OpenAcross(ctx, stores, d.Name, &options)
		} else {
			s.Numbers, err = sequence.Open(ctx, stores[0], d.Name, &options)
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckSeries returns the error that [OpenSeries] returns before it creates anything: the stores are
// copies, the name is that of another counter, or the series was created with other settings. Creates
// reports whether OpenSeries creates the counter. CheckSeries creates nothing.
func CheckSeries(ctx context.Context, d *config.Series, stores []store.Store) (creates bool, err error) {
	if err := checkStores(ctx, d, stores); err != nil {
		return false, err
	}
	if creates, err = begins(ctx, d, stores); creates || err != nil || d.Across() {
		return creates, err
	}
	switch d.Kind { // what is missing OpenSeries says better, and creates nothing
	case config.Document:
		if info, err := document.Show(ctx, stores[0], d.Defined()); err == nil {
			return false, d.Options.Document.Agrees(info)
		}
	case config.Sequence:
		if info, err := sequence.Show(ctx, stores[0], d.Name); err == nil {
			return false, d.Options.Sequence.Agrees(info)
		}
	}
	return false, nil
}

// numbers are the options of a series of numbers.
func (o *Options) numbers(d *config.Series) sequence.Options {
	options := d.Options.Sequence
	options.Logger = o.Logger
	if o.About > 0 && options.MaxUnused == 0 {
		options.MaxUnused = int(max(min(o.About, block.DefaultMaxUnused), int64(options.Cache)))
	}
	return options
}

// checkStores refuses to count in a copy of another store, where its pools tell: both would
// give the same numbers. A lease finds out by itself. And it refuses a name that is that of a
// counter of another kind, which a second counter would hide. At least one store has to answer.
func checkStores(ctx context.Context, d *config.Series, stores []store.Store) error {
	if d.Kind == config.Flake {
		return nil
	}
	var away []error
	for i, s := range stores {
		err := copied.CheckPools(ctx, s)
		if err == nil {
			err = countername.SameKind(ctx, s, d)
		}
		if err == nil {
			continue
		}
		if err = whichstore.At(d, d.URLs[i], err); !mayReturn(ctx, d, err) {
			return err
		}
		away = append(away, err)
	}
	if len(away) == len(stores) {
		return away[0]
	}
	return nil
}

// mayReturn reports whether an error of one of several stores of a sequence is that it is away. The sequence
// begins with the others. When the store is back, the sequence looks at its own record there before it
// draws: that is made when all stores are there, and says which store it is in.
func mayReturn(ctx context.Context, d *config.Series, err error) bool {
	return d.Across() && ctx.Err() == nil && (firn.Retryable(err) || errors.Is(err, context.DeadlineExceeded))
}

// lacking returns an error where a store would create what the series draws from.
func lacking(ctx context.Context, d *config.Series, st store.Store) error {
	durability, err := st.Durability(ctx)
	switch {
	case err != nil || !durability.NoticesLoss:
		return err // such a store creates nothing
	case d.Kind == config.Flake:
		// The ids of a pool start late enough where the store says itself that it lost one.
		if lost, err := countername.MayHaveLost(ctx, st); err != nil || lost {
			return err
		}
		_, err = pool.Show(ctx, st, d.Leasing.Pool)
		return cause.Learn(ctx, st, d.Leasing, err)
	}
	return countername.CheckCounter(ctx, st, d, store.Durability{})
}

// begins reports whether to open the series is to begin it, as in a file of this host: a name
// that was mistyped is a counter of its own.
func begins(ctx context.Context, d *config.Series, stores []store.Store) (bool, error) {
	if d.Kind == config.Flake || d.Across() {
		return false, nil
	}
	durability, err := stores[0].Durability(ctx)
	if err != nil || !durability.NoticesLoss {
		return false, err
	}
	if d.Kind == config.Document {
		_, err = document.Show(ctx, stores[0], d.Defined())
	} else {
		_, err = sequence.Show(ctx, stores[0], d.Name)
	}
	if !errors.As(err, new(*document.MissingError)) && !errors.As(err, new(*sequence.MissingError)) {
		return false, nil
	}
	if lost, err := countername.MayHaveLost(ctx, stores[0]); err != nil || lost {
		return true, err
	}
	return true, countername.CheckNew(ctx, stores[0], d)
}
