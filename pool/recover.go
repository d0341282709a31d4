package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

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
// host's, Recover changes nothing and returns what [CheckClock] says. It accepts that the pools are in this store. It may be
// repeated, and has to be after an error.
//
// A pool without a record, of which the store has records of workers, is not made safe by
// this: [Ensure] creates it.
func Recover(ctx context.Context, s store.Store, outage time.Duration) ([]Recovery, error) {
	if outage <= 0 {
		outage = DefaultOutage
	}
	if err := CheckClock(ctx, s); err != nil {
		return nil, err
	}
	durability, err := s.Durability(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return nil, err
	}
	now := latest(rec)
	floor := now.Add(outage)
	if rec.Version != "" {
		all, err := term.ReadStore(rec)
		if err != nil {
			return nil, err
		}
		if all.Floor.After(floor) {
			floor = all.Floor
		}
	}
	if _, err := s.Put(ctx, rec.Key, term.Store{Floor: floor}.Encode(), store.Condition{Version: rec.Version}); err != nil {
		return nil, fmt.Errorf("pool: writing down when ids of the store may start: %w", err)
	}
	pools, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	var done []Recovery
	for _, p := range pools {
		r, err := p.recover(ctx, s, now, floor, durability.Identity)
		if err != nil {
			return done, fmt.Errorf("pool: %q: %w", p.name, err)
		}
		if p.Created() {
			done = append(done, r)
		}
	}
	return done, nil
}

// recover raises the pool's floor first and the workers' records after, so
// that whoever acquires a worker meanwhile either reads the new floor or is found.
func (p *stored) recover(ctx context.Context, s store.Store, now, floor time.Time, identity string) (Recovery, error) {
	if err := p.raise(ctx, s, now, floor, identity); err != nil {
		return Recovery{}, err
	}
	r := Recovery{Pool: p.name, StartsAt: p.layout.Time(p.Floor + 1)}
	for pass := 0; ; pass++ {
		rewritten, err := p.free(ctx, s, pass == 0)
		r.Workers += rewritten
		if err != nil || rewritten == 0 {
			return r, err
		}
	}
}

// raise raises the pool's floor above every horizon that its workers have,
// and above all that its members may have been granted.
func (p *stored) raise(ctx context.Context, s store.Store, now, floor time.Time, identity string) error {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return err
	}
	if longest := now.Add(p.OutageLimit()); longest.After(floor) {
		floor = longest
	}
	to := min(p.layout.Tick(floor), p.layout.Last())
	for _, rec := range recs {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return err
		}
		to = max(to, w.Horizon)
	}
	p.Pool = p.Raised(to, identity)
	return p.write(ctx, s)
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
