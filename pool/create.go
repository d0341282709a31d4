package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// Create creates a pool whose ids start at once. The caller states that no pool of this name
// ever existed in this store, nor in a store that this one was copied or restored from, and that
// the store has lost no other pool with these workers. If that is wrong, ids repeat, and nothing
// can notice it. So call Create once, in the step that creates the database, and never when a
// program starts.
//
// Errors: [*ExistsError], the pool is there; [*RemainsError], the store has records of an
// earlier pool of this name; [*store.OtherStoreError], this store is a copy; [*OverlapError];
// [*OptionError]; [ErrBusy].
func Create(ctx context.Context, s store.Store, name string, opts *Options) (Info, error) {
	return create(ctx, s, name, opts, false)
}

// Ensure returns a pool, and creates it if it is missing. The store may have lost an earlier pool
// of this name. So the ids of a pool that Ensure creates start only above everything that the
// earlier pool may have issued: after the longest outage budget that a process may have had,
// which is 5 min or Options.Outage, and the error of two clocks, 5 s each. Info.StartsAt says
// when. A process that still holds a worker of an earlier pool of this name loses it.
//
// It reckons by the store's clock. Where that differs from this host's by more than 5 s, one of
// the two is wrong: Ensure creates nothing, and returns what [CheckClock] says.
//
// If the pool is there, Ensure compares the options: another layout is a [*LayoutError]. Other
// errors are those of [Create].
func Ensure(ctx context.Context, s store.Store, name string, opts *Options) (Info, error) {
	return create(ctx, s, name, opts, true)
}

// tries is how often a call begins anew because another process was at work on the pool.
const tries = 20

// pause waits before a try after so many, longer each time and not as long as others do. It
// reports whether ctx still lasts.
func pause(ctx context.Context, tried int) bool {
	t := time.NewTimer(rand.N(time.Duration(tried*tried) * time.Millisecond / 2))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func create(ctx context.Context, s store.Store, name string, opts *Options, careful bool) (Info, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.check(name, careful); err != nil {
		return Info{}, err
	}
	for try := 1; ; try++ {
		info, err := createOnce(ctx, s, name, &o, careful)
		if !errors.Is(err, ErrBusy) || try == tries || !pause(ctx, try) {
			return info, err
		}
	}
}

func createOnce(ctx context.Context, s store.Store, name string, o *Options, careful bool) (Info, error) {
	if err := checkStore(ctx, s); err != nil {
		return Info{}, err
	}
	p, err := get(ctx, s, name)
	if err != nil {
		return Info{}, err
	}
	if p.Created() {
		return o.meet(p, careful)
	}
	if careful {
		if err := CheckClock(ctx, s); err != nil {
			return Info{}, err
		}
	}
	remains, err := remainsOf(ctx, s, name)
	if err != nil {
		return Info{}, err
	}
	if len(remains) > 0 {
		// They may be of a pool that somebody else has created since.
		again, err := get(ctx, s, name)
		if err != nil {
			return Info{}, err
		}
		if again.Created() {
			return o.meet(again, careful)
		}
		if !careful {
			return Info{}, &RemainsError{Pool: name, Workers: len(remains)}
		}
	}
	p.plan(o)
	if _, err := p.alone(ctx, s); err != nil { // a refusal that writes nothing
		return Info{}, err
	}
	if careful {
		if err := markLost(ctx, s, len(remains)); err != nil {
			return Info{}, err
		}
	}
	if err := p.write(ctx, s); err != nil {
		return Info{}, err
	}
	inherited, err := p.alone(ctx, s)
	if err != nil {
		return Info{}, errors.Join(err, p.withdraw(ctx, s))
	}
	if err := p.begin(ctx, s, careful, inherited); err != nil {
		return Info{}, err
	}
	info := p.info()
	info.Created = true
	return info, nil
}

// markLost marks a store that may have lost counters too: it has nothing besides what remains of the
// pool, or some of that. A store that has something else was not lost as a whole; what one lacks
// that went back to an older state is for Recover.
func markLost(ctx context.Context, s store.Store, remains int) error {
	all, err := s.List(ctx, "")
	if err != nil || remains == 0 && len(all) > 0 {
		return err
	}
	return record.MarkLost(ctx, s)
}

// meet answers for a pool that is there.
func (o *Options) meet(p stored, careful bool) (Info, error) {
	info := p.info()
	switch {
	case !careful:
		return info, &ExistsError{info}
	case o.Layout.IsValid() && o.Layout != p.layout:
		return info, &term.LayoutError{Pool: p.name, Have: p.layout.String(), Want: o.Layout.String()}
	case o.Workers > 0 && o.workers() != p.workers():
		return info, &OptionError{"workers", fmt.Sprintf("pool %q has workers %s, not %s", p.name, p.workers(), o.workers())}
	case o.Outage > info.OutageLimit:
		return info, &OptionError{"outage", fmt.Sprintf("pool %q allows outage budgets of up to %s, not %s", p.name, info.OutageLimit, o.Outage)}
	}
	return info, nil
}

// remainsOf returns the records that the store has of workers of a pool without a record.
func remainsOf(ctx context.Context, s store.Store, name string) ([]store.Record, error) {
	return s.List(ctx, term.KeyPool(name)+"/")
}

// plan makes it the record of a pool that is being created, with the workers that it wants.
func (p *stored) plan(o *Options) {
	p.layout = o.layout()
	p.Pool = term.NewPool(newID(), p.layout, o.workers(), o.Outage)
	p.MayRepeat = sorted(o.MayRepeat)
}

// alone returns an [*OverlapError] where another pool claims workers that this one
// reserves, or ever had them with another layout. What is only reserved by a pool that is
// being created is made void. It returns what the pool inherits from others.
func (p *stored) alone(ctx context.Context, s store.Store) (got inheritance, err error) {
	all, err := list(ctx, s)
	if err != nil {
		return got, err
	}
	mine, _, err := p.Claim(p.layout)
	if err != nil {
		return got, err
	}
	for _, other := range all {
		if other.name == p.name || p.Repeats(other.name) || other.Repeats(p.name) {
			continue
		}
		theirs, claims, err := other.Claim(other.layout)
		if err != nil {
			return got, err
		}
		overlaps := claims && term.CouldRepeat(p.layout, mine, other.layout, theirs)
		if !other.Created() {
			if !overlaps {
				continue
			}
			other.Pool = other.Void()
			if err := other.write(ctx, s); err != nil {
				return got, err
			}
			continue
		}
		ever, err := other.Ever(other.layout)
		if err != nil {
			return got, err
		}
		if !overlaps && term.CouldRepeat(p.layout, mine, other.layout, ever) {
			got.some, got.past = true, max(got.past, other.Past)
			// By another layout the same bits are of another time, which may yet come.
			overlaps, theirs = p.layout != other.layout, ever
		}
		if !overlaps {
			continue
		}
		e := &OverlapError{Pool: p.name, Layout: p.layout, Other: other.info()}
		if term.SameWorkerBits(p.layout, other.layout) {
			same, _ := mine.Common(theirs)
			e.Same = same.String()
		}
		return got, e
	}
	return got, nil
}

// An inheritance is what a pool gets from pools that had its workers before.
type inheritance struct {
	some bool      // there is one
	past firn.Tick // the highest that may have been issued with those workers
}

// floor is what the ids of whoever inherits start above, at a reading of the store's clock.
func (i inheritance) floor(l firn.Layout, rec store.Record) firn.Tick {
	if !i.some {
		return 0
	}
	return max(i.past, clamp(l, earliest(rec)))
}

// withdraw gives up what a pool that is not created has reserved. If that fails, whoever
// creates a pool with these workers does it.
func (p *stored) withdraw(ctx context.Context, s store.Store) error {
	p.Pool = p.Void()
	if err := p.write(ctx, s); err != nil && !errors.Is(err, ErrBusy) {
		return fmt.Errorf("pool: giving up what was reserved for %q: %w", p.name, err)
	}
	return nil
}

// begin makes the pool usable. Its ids start above the store's floor and, where an earlier
// pool may have issued some, above all of those.
func (p *stored) begin(ctx context.Context, s store.Store, careful bool, inherited inheritance) error {
	// Now that a record is there, the store can say where it is.
	durability, err := s.Durability(ctx)
	if err != nil {
		return err
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return err
	}
	var floor firn.Tick
	if rec.Version != "" {
		all, err := term.ReadStore(rec)
		if err != nil {
			return err
		}
		floor = clamp(p.layout, all.Floor)
	}
	if careful {
		left, err := p.freeRemains(ctx, s)
		if err != nil {
			return err
		}
		floor = max(floor, left, clamp(p.layout, latest(rec).Add(max(p.OutageLimit(), term.OutageDurable))))
	}
	floor = max(floor, inherited.floor(p.layout, rec))
	workers, _, err := p.Claim(p.layout)
	if err != nil {
		return err
	}
	p.Pool = p.Above(floor, durability.Identity)
	return p.use(ctx, s, workers)
}

// freeRemains takes the workers of an earlier pool of this name away from their holders,
// which may be alive, and returns the highest tick that they may have issued.
func (p *stored) freeRemains(ctx context.Context, s store.Store) (last firn.Tick, err error) {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return 0, err
	}
	for _, rec := range recs {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return 0, err
		}
		last = max(last, w.Horizon)
		if w.Owner == "" {
			continue
		}
		if _, err := s.Put(ctx, rec.Key, w.Freed(0).Encode(), store.Condition{Version: rec.Version}); errors.Is(err, store.ErrConflict) {
			return 0, ErrBusy
		} else if err != nil {
			return 0, err
		}
	}
	return last, nil
}

// use writes down that members lease from a range.
func (p *stored) use(ctx context.Context, s store.Store, workers term.Range) (err error) {
	if p.Pool, err = p.Use(workers, p.layout); err != nil {
		return err
	}
	return p.write(ctx, s)
}

// latest is the latest instant that it can be now by the clock of any process. The clock
// that is read here, the store's or this process's, may be behind, and the clock of the
// process that was granted most may be ahead: of a failed-over store, or of a file's host
// before it was set.
func latest(rec store.Record) time.Time {
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	return now.Add(2 * term.Skew)
}

// clamp is the layout's tick at t, within the layout's life.
func clamp(l firn.Layout, t time.Time) firn.Tick {
	return min(max(l.Tick(t), 0), l.Last())
}

func (o *Options) layout() firn.Layout {
	if o.Layout.IsValid() {
		return o.Layout
	}
	return firn.Default()
}

// workers is the range that the options ask for, which may be none that the layout has.
func (o *Options) workers() term.Range {
	n := o.Workers
	if n == 0 {
		n = o.layout().Workers() - o.First
	}
	return term.Range{First: o.First, Last: o.First + n - 1}
}

// Check returns what is wrong with the options of a new pool, whatever its store has: what [Create]
// would return before it asks the store.
func (o *Options) Check(name string) error { return o.check(name, false) }

// check reports what is wrong with a name and options.
func (o *Options) check(name string, careful bool) error {
	l := o.layout()
	if err := checkName(name); err != nil {
		return err
	}
	if err := l.Check(time.Now()); err != nil {
		return err
	}
	for _, other := range o.MayRepeat {
		if err := checkName(other); err != nil {
			return err
		}
	}
	switch {
	case o.First < 0 || o.First >= l.Workers():
		return &OptionError{"workers", fmt.Sprintf("workers begin at %d: layout %s has 0-%d", o.First, layoutName(l), l.Workers()-1)}
	case o.Workers < 0:
		return &OptionError{"workers", fmt.Sprintf("%d workers: there are 1 to %d, or 0 for all", o.Workers, l.Workers()-o.First)}
	case o.Workers > l.Workers()-o.First:
		return &OptionError{"workers", fmt.Sprintf("workers %s: layout %s has 0-%d", o.workers(), layoutName(l), l.Workers()-1)}
	case o.Outage != 0 && o.Outage < time.Second:
		return &OptionError{"outage", fmt.Sprintf("outage %s is under 1s", o.Outage)}
	case careful && o.Outage != 0 && o.Outage < term.OutageDurable:
		return &OptionError{"outage", fmt.Sprintf("outage %s: processes of an earlier pool may have had %s; only a longer one can be said", o.Outage, term.OutageDurable)}
	}
	return nil
}
