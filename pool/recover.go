package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// DefaultOutage is how long processes of a pool may make ids while the store is away, where the
// pool was created without another limit.
const DefaultOutage = term.OutageDurable

// A Recovery is what [Recover] did to one pool.
type Recovery struct {
	Pool     string
	StartsAt time.Time // ids start then
	Workers  int       // how many records of workers were rewritten
	Why      string    // whose record the ids start above, where that is further ahead than an outage budget reaches; empty: nobody's
}

// Recover makes the pools of a store safe after it lost something: a backup was
// restored, a replica that lagged was promoted, or a file was lost. Cut every process off
// the store first, and let them back in when it has returned: ids issued from the store
// in between may repeat.
//
// It raises the floor of the store and of every pool above everything that may have
// been granted; then it takes every worker away from its holder. outage is the longest
// outage budget that a process may have had in a pool that the store does not have any
// more; zero means 5 min. Pools that the store has count with their own limit. So no ids
// are issued for about that long, reckoned by the store's clock: where that differs from this
// host's, Recover changes nothing and returns what [CheckClock] says. No ids of a pool are issued
// before the highest horizon of its workers' records either: where the clock of a process was ahead,
// that is later, see [PlanRecovery]. It accepts that the pools are in this store. It may be
// repeated, and has to be after an error.
//
// A pool without a record, of which the store has records of workers, is not made safe by
// this: [Ensure] creates it.
func Recover(ctx context.Context, s store.Store, outage time.Duration) ([]Recovery, error) {
	r, err := reckon(ctx, s, outage)
	if err != nil {
		return nil, err
	}
	durability, err := s.Durability(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.Put(ctx, term.KeyStore, term.Store{Floor: r.floor}.Encode(), store.Condition{Version: r.version}); err != nil {
		return nil, fmt.Errorf("pool: writing down when ids of the store may start: %w", err)
	}
	pools, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var done []Recovery
	for _, p := range pools {
		one, err := p.recover(ctx, s, r, durability.Identity)
		if err != nil {
			return done, fmt.Errorf("pool: %q: %w", p.name, err)
		}
		if p.Created() {
			done = append(done, one)
		}
	}
	return done, nil
}

// PlanRecovery returns what [Recover] would do, without the records that it would rewrite. It
// writes nothing.
func PlanRecovery(ctx context.Context, s store.Store, outage time.Duration) ([]Recovery, error) {
	r, err := reckon(ctx, s, outage)
	if err != nil {
		return nil, err
	}
	pools, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []Recovery
	for _, p := range pools {
		if !p.Created() {
			continue
		}
		if err := p.raise(ctx, s, r, p.Store); err != nil {
			return nil, fmt.Errorf("pool: %q: %w", p.name, err)
		}
		all = append(all, p.recovery())
	}
	return all, nil
}

// A reckoning is what a recovery goes by.
type reckoning struct {
	now     time.Time     // the latest that it can be by any clock
	floor   time.Time     // of the store
	version store.Version // of the store's record
}

// reckon reads the store's clock and its floor.
func reckon(ctx context.Context, s store.Store, outage time.Duration) (r reckoning, err error) {
	if outage <= 0 {
		outage = DefaultOutage
	}
	if err := CheckClock(ctx, s); err != nil {
		return r, err
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return r, err
	}
	now := latest(rec)
	r = reckoning{now, now.Add(outage), rec.Version}
	if rec.Version == "" {
		return r, nil
	}
	all, err := term.ReadStore(rec)
	if err == nil && all.Floor.After(r.floor) {
		r.floor = all.Floor
	}
	return r, err
}

// recover raises the pool's floor first and the workers' records after, so
// that whoever acquires a worker meanwhile either reads the new floor or is found.
func (p *stored) recover(ctx context.Context, s store.Store, r reckoning, identity string) (Recovery, error) {
	if err := p.raise(ctx, s, r, identity); err != nil {
		return Recovery{}, err
	}
	if err := p.write(ctx, s); err != nil {
		return Recovery{}, err
	}
	done := p.recovery()
	for pass := 0; ; pass++ {
		rewritten, err := p.free(ctx, s, pass == 0)
		done.Workers += rewritten
		if err != nil || rewritten == 0 {
			return done, err
		}
	}
}

// recovery says when the ids of the pool start, and why.
func (p *stored) recovery() Recovery {
	return Recovery{Pool: p.name, StartsAt: p.layout.Time(p.Floor + 1), Why: p.Ahead}
}

// raise raises the floor above all that the pool's members may have been granted, and above every
// horizon that its workers have. A horizon further ahead than any grant reaches was written by a
// clock that was ahead, or the clock here is behind, and nothing here tells which. In both cases the
// store may have forgotten grants of other workers that were as far ahead. So the whole pool starts
// above it, and not that worker alone. The record is written by the caller.
func (p *stored) raise(ctx context.Context, s store.Store, r reckoning, identity string) error {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return err
	}
	floor := r.floor
	if longest := r.now.Add(p.OutageLimit()); longest.After(floor) {
		floor = longest
	}
	granted := min(p.layout.Tick(floor), p.layout.Last())
	to, ahead := granted, ""
	for _, rec := range recs {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return err
		}
		if w.Horizon > to {
			to, ahead = w.Horizon, p.ahead(rec.Key, w, granted)
		}
	}
	p.Pool = p.Raised(to, ahead, identity)
	return nil
}

// ahead says whose record has a horizon that is further ahead than any grant reaches.
func (p *stored) ahead(key string, w term.Record, granted firn.Tick) string {
	worker, _ := term.WorkerOf(p.name, key)
	by := p.layout.Time(w.Horizon).Sub(p.layout.Time(granted))
	if by >= time.Second {
		by = by.Truncate(time.Second)
	}
	return fmt.Sprintf("worker %d may have issued ids up to %s: its record was written by %s, whose clock was ahead by at least %s, or the clock of the recovery was behind",
		worker, p.layout.Time(w.Horizon).UTC().Format(time.RFC3339), cmp.Or(w.Name, "a process"), by)
}

// free raises the workers' records that are below the floor, and takes
// those workers away from their holders; with held, all that are held. It
// returns how many records it rewrote, or has to look at again.
func (p *stored) free(ctx context.Context, s store.Store, held bool) (n int, err error) {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return 0, err
	}
	for _, rec := range recs {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return n, err
		}
		if w.Horizon >= p.Floor && (w.Owner == "" || !held) {
			continue
		}
		_, err = s.Put(ctx, rec.Key, w.Freed(p.Floor).Encode(), store.Condition{Version: rec.Version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return n, err
		}
		n++
	}
	return n, nil
}

// AcceptMove accepts that the pools are in this store now, and changes nothing else. The
// caller states that the store was moved on purpose, that no process has used the old one
// since the copy was made, and that it is gone. Otherwise [Recover] is right: ids that
// were issued since the copy would be issued again. It returns the pools that it changed.
func AcceptMove(ctx context.Context, s store.Store) ([]Info, error) {
	durability, err := s.Durability(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var moved []Info
	for _, p := range pools {
		if p.Store == durability.Identity || !p.Created() {
			continue
		}
		p.Pool = p.In(durability.Identity)
		if err := p.write(ctx, s); err != nil {
			return moved, fmt.Errorf("pool: %q: %w", p.name, err)
		}
		moved = append(moved, p.info())
	}
	return moved, nil
}

// CheckClock compares the store's clock with this host's, as [Ensure] and [Recover] do before they
// change anything. It returns a [*ClockError] where they differ by more than 5 s, and nil where the
// store has no clock, or this host's.
func CheckClock(ctx context.Context, s store.Store) error {
	return record.CheckClock(ctx, s, term.KeyStore)
}
