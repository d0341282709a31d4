package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Worker is what the store has written down about a worker that was leased at least once.
type Worker struct {
	Worker  int64
	Layout  firn.Layout // of the pool; its method WorkerText writes Worker as the values of its fields, such as 3/7
	Term    uint64      // how often the worker was leased or taken away
	State   WorkerState
	Name    string        // of the process that holds the worker, or held it last
	Version string        // of firn in that process; empty: not recorded
	Free    time.Duration // until a process can lease the worker, if its holder does not write again; 0 if State is WorkerFree or WorkerUnknown
	Horizon time.Time     // no id of the worker has a later time
	Written time.Time     // when the record was written, by the store's clock; zero if the store has no clock
}

// A WorkerState says whether a process has a worker.
type WorkerState string

const (
	// WorkerFree means that no process holds the worker, or that its holder has not written for
	// the worker's time to live: a process can lease it now, and has ids after a few seconds.
	WorkerFree WorkerState = "free"
	// WorkerUnusable means that no process holds the worker, and that ids up to Horizon may be in
	// use, which is too far ahead of this host's clock: a process that waits as long as by default
	// does not lease it yet.
	WorkerUnusable WorkerState = "unusable"
	// WorkerHeld means that a process holds the worker and has written within its time to live.
	WorkerHeld WorkerState = "held"
	// WorkerUnknown means that a process took the worker and did not give it back, and that the
	// store has no clock (etcd, ZooKeeper), so the records do not say whether that process is
	// alive.
	WorkerUnknown WorkerState = "unknown"
)

// Workers returns the workers of a pool that were ever held, by number.
func Workers(ctx context.Context, s store.Store, name string) ([]Worker, error) {
	p, err := existing(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return p.list(ctx, s, time.Now())
}

func (p *stored) list(ctx context.Context, s store.Store, now time.Time) ([]Worker, error) {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return nil, err
	}
	rules := term.Default(p.name, p.layout, store.Durability{})
	workers := make([]Worker, 0, len(recs))
	for _, rec := range recs {
		n, ok := term.WorkerOf(p.name, rec.Key)
		if !ok {
			continue
		}
		r, err := term.ReadRecord(rec)
		if err != nil {
			return nil, err
		}
		w := Worker{
			Worker: n, Layout: p.layout, Term: r.Term, Name: r.Name, Version: r.Build, Written: rec.Written,
			Horizon: p.layout.Time(r.Horizon + 1).Add(-1),
		}
		w.State, w.Free = p.workerState(rec, r)
		if past := rules.Unusable(r.Horizon, now); past > 0 && w.State != WorkerUnknown {
			w.Free = max(w.Free, past)
			if w.State == WorkerFree {
				w.State = WorkerUnusable
			}
		}
		workers = append(workers, w)
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.Worker, b.Worker) })
	return workers, nil
}

// workerState says whether a worker is held, and for how long if its holder does not write again.
func (p *stored) workerState(rec store.Record, r term.Record) (WorkerState, time.Duration) {
	if r.Owner == "" {
		return WorkerFree, 0
	}
	if rec.Read.IsZero() {
		return WorkerUnknown, 0
	}
	if left := r.Left(rec, p.Lossy != ""); left > 0 {
		return WorkerHeld, left
	}
	return WorkerFree, 0
}

// Release takes a worker away from its holder, which is known to be gone. Its
// horizon stays, so nothing repeats even where the holder is alive: that process
// takes another worker when it finds out. ErrConflict says that somebody wrote
// the record meanwhile, so the holder may be alive: look again. A [*store.OtherStoreError]
// says that this store is a copy.
func Release(ctx context.Context, s store.Store, name string, worker int64) error {
	if err := checkStore(ctx, s); err != nil {
		return err
	}
	if _, err := Show(ctx, s, name); err != nil {
		return err
	}
	rec, err := s.Get(ctx, term.KeyWorker(name, worker))
	if err != nil {
		return err
	}
	r, err := term.ReadRecord(rec)
	if err != nil || r.Owner == "" {
		return err // no process has it
	}
	_, err = s.Put(ctx, rec.Key, r.Freed(0).Encode(), store.Condition{Version: rec.Version})
	return err
}

// An InUseError says that a pool cannot give up a worker yet. No process takes a worker
// outside the new range from now on: call SetWorkers again later.
type InUseError struct {
	Pool   string
	Worker int64
	Name   string    // of the process that holds it; empty: none does, but ids of it up to Until may exist
	Until  time.Time // the worker can be given up then, if its holder has died; zero: when its holder has ended
	Free   time.Time // when a holder that does not write again counts as dead; zero: there is no holder, or the store has no clock to tell it
}

// Outlasts reports whether the holder, if it has died, still keeps the worker when Until is past,
// so that somebody has to release it to have it given up then.
func (e *InUseError) Outlasts() bool {
	return e.Name != "" && (e.Free.IsZero() || e.Free.After(e.Until))
}

// Retryable is true; see firn.Retryable.
func (*InUseError) Retryable() bool { return true }

func (e *InUseError) Error() string {
	text := fmt.Sprintf("pool: %q cannot give up worker %d yet: ", e.Pool, e.Worker)
	if e.Name != "" {
		text += "it is held by " + e.Name
	} else {
		text += "it may have issued ids ahead of the clock"
	}
	if !e.Until.IsZero() {
		text += ", until " + e.Until.UTC().Format(time.RFC3339) + " at least"
	}
	return text
}

// SetWorkers changes the range of workers of a pool to first up to last. The new range and
// the old one must have workers in common.
//
// Workers that come in must be no other pool's: an [*OverlapError] says that they are, and
// nothing has changed. Workers that go out stay the pool's until their processes have ended
// and the clock has passed all that they may have issued: an [*InUseError] says that this
// is not so yet. Then no process takes them any more, and the call is to be repeated.
//
// A [*store.OtherStoreError] says that this store is a copy.
func SetWorkers(ctx context.Context, s store.Store, name string, first, last int64) (Info, error) {
	for try := 1; ; try++ {
		info, err := setWorkersOnce(ctx, s, name, term.Range{First: first, Last: last})
		if !errors.Is(err, ErrBusy) || try == tries || !pause(ctx, try) {
			return info, err
		}
	}
}

func setWorkersOnce(ctx context.Context, s store.Store, name string, want term.Range) (Info, error) {
	if err := checkStore(ctx, s); err != nil {
		return Info{}, err
	}
	p, err := existing(ctx, s, name)
	switch {
	case err != nil:
		return Info{}, err
	case want.First < 0 || want.Last < want.First || want.Last >= p.layout.Workers():
		return Info{}, &OptionError{"workers", fmt.Sprintf("workers %s: layout %s has 0-%d", want, layoutName(p.layout), p.layout.Workers()-1)}
	}
	had := p.workers()
	claimed, _, err := p.Claim(p.layout)
	if err != nil {
		return Info{}, err
	}
	usable, some := had.Common(want)
	switch {
	case !some:
		return Info{}, &OptionError{"workers", fmt.Sprintf("workers %s: none of them is one of %s, which pool %q has; widen the range first, and narrow it then", want, had, name)}
	case had == want && p.Reserved == "":
		return p.info(), nil
	}
	p.Pool = p.Reserve(usable, claimed.Span(want))
	if err := p.write(ctx, s); err != nil {
		return Info{}, err
	}
	inherited, err := p.alone(ctx, s)
	if err != nil {
		if p.Pool = p.Reserve(had, claimed); claimed != had { // what it claimed before is its own
			return p.info(), errors.Join(err, p.write(ctx, s))
		}
		return p.info(), errors.Join(err, p.use(ctx, s, had))
	}
	if err := p.unused(ctx, s, want); err != nil {
		return p.info(), err
	}
	p.Pool = p.Above(inherited.floor(p.layout, store.Record{Read: p.read}), p.Store)
	if err := p.use(ctx, s, want); err != nil {
		return Info{}, err
	}
	return p.info(), nil
}

// unused returns an [*InUseError] where a worker outside of a range is held, or may have
// issued ids that lie ahead. A process that took one before the range was reserved has
// written its record by now; one that takes it later reads the range afterwards.
func (p *stored) unused(ctx context.Context, s store.Store, within term.Range) error {
	recs, err := s.List(ctx, term.KeyWorkers(p.name))
	if err != nil {
		return err
	}
	for _, rec := range recs {
		n, ok := term.WorkerOf(p.name, rec.Key)
		if !ok || within.Has(n) {
			continue
		}
		r, err := term.ReadRecord(rec)
		state, left := p.workerState(rec, r)
		if err == nil && r.Owner != "" && state == WorkerFree {
			// Its holder may yet wake up. After this write it cannot extend.
			r = r.Freed(0)
			_, err = s.Put(ctx, rec.Key, r.Encode(), store.Condition{Version: rec.Version})
			if errors.Is(err, store.ErrConflict) {
				return ErrBusy
			}
		}
		if err != nil {
			return err
		}
		p.Past = max(p.Past, r.Horizon)
		e := &InUseError{Pool: p.name, Worker: n}
		if horizon := p.layout.Time(r.Horizon + 1); horizon.After(earliest(rec)) {
			e.Until = horizon.Add(term.Skew)
		}
		if r.Owner != "" {
			e.Name = r.Name
		}
		if state == WorkerHeld {
			e.Free = rec.Read.Add(left)
		}
		if e.Name != "" || !e.Until.IsZero() {
			return e
		}
	}
	return nil
}

// earliest is the earliest instant that it can be now by the clock of any process.
func earliest(rec store.Record) time.Time {
	if rec.Read.IsZero() {
		return time.Now().Add(-2 * term.Skew)
	}
	return rec.Read.Add(-term.Skew)
}
