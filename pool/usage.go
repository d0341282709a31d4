package pool

import (
	"context"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Usage says who has the workers of a pool, and what the pool does while its store is away.
type Usage struct {
	Held     int64 // workers, also those that go out while the range of the pool is being changed
	Free     int64 // can be leased now
	Unusable int64 // nobody holds them, and ids up to UnusableUntil may be in use
	Unknown  int64 // as Held: held, or left by a process that died: the store has no clock that tells

	UnusableUntil time.Time     // of the last of them; zero: none is unusable
	Outage        time.Duration // how long ids continue without the store, where a process asks for no other time
	StartDelay    time.Duration // how long each process waits that starts, on a store that can lose writes

	// Elsewhere is what the store says of itself where the pool was made in another one: it is a
	// copy, and no process takes a worker of the pool here.
	Elsewhere string
}

// Use returns the pool with who uses it, or a [*MissingError]. It reads the record of each
// worker. Times are compared with now, which is this host's clock.
func Use(ctx context.Context, s store.Store, name string, now time.Time) (Info, Usage, error) {
	p, err := existing(ctx, s, name)
	if err != nil {
		return Info{}, Usage{}, err
	}
	workers, err := p.list(ctx, s, now)
	if err != nil {
		return Info{}, Usage{}, err
	}
	durability, err := s.Durability(ctx)
	if err != nil {
		return Info{}, Usage{}, err
	}
	reserved, _, err := p.Claim(p.layout)
	if err != nil {
		return Info{}, Usage{}, err
	}
	u := p.usage(workers, reserved)
	if p.Pool.Elsewhere(durability.Identity) {
		u.Elsewhere = durability.Identity
	}
	rules := term.Default(name, p.layout, durability)
	lossy := !durability.Durable || p.Lossy != ""
	u.Outage = rules.Budget(p.Pool, lossy)
	if lossy {
		u.StartDelay = rules.StartDelay(p.Pool)
	}
	return p.info(), u, nil
}

// usage counts who has which worker. A worker of the reserved range that goes out is not free to
// anybody, and may be held.
func (p *stored) usage(workers []Worker, reserved term.Range) (u Usage) {
	within := p.workers()
	u.Free = within.Count()
	for _, w := range workers {
		if within.Has(w.Worker) && w.State != WorkerFree {
			u.Free--
		}
		switch {
		case !reserved.Has(w.Worker):
		case w.State == WorkerHeld:
			u.Held++
		case w.State == WorkerUnknown:
			u.Unknown++
		case w.State == WorkerUnusable && within.Has(w.Worker):
			u.Unusable++
			if w.Horizon.After(u.UnusableUntil) {
				u.UnusableUntil = w.Horizon
			}
		}
	}
	return u
}
