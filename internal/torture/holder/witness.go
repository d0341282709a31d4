//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A witness stands between the lease and its store, and says what was granted
// before the lease knows of it.
type witness struct {
	store.Store
	pool      string
	unwritten bool // the fault: extensions are acknowledged and not carried out

	mu    sync.Mutex
	seen  map[store.Version]term.Record // records by the version they had
	tried map[string]attempt            // Puts that were not acknowledged, by key
	last  ledger.Event                  // latest grant
}

type attempt struct {
	value []byte
	cond  store.Version
	prior term.Record
	asked int64 // when, by the boot clock
}

func (w *witness) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := w.Store.Get(ctx, key)
	if err == nil {
		w.saw(rec)
		w.mu.Lock()
		a, ok := w.tried[key]
		w.mu.Unlock()
		if a, ok = a.found(rec, ok); ok {
			w.granted(key, a)
		}
	}
	return rec, err
}

// found reports whether a record is what an attempt wrote after all, or what the lease
// takes for that: an extension of the same owner that an earlier process sent before it
// died, which was carried out after its grant file was read.
func (a attempt) found(rec store.Record, tried bool) (attempt, bool) {
	if !tried || bytes.Equal(a.value, rec.Value) {
		return a, tried
	}
	mine, theirs := read(a.value), read(rec.Value)
	late := mine.Owner != "" && theirs.Owner == mine.Owner && rec.Version != a.cond
	return attempt{rec.Value, rec.Version, term.Record{Owner: mine.Owner, Horizon: -1}, a.asked}, late
}

func (w *witness) List(ctx context.Context, prefix string) ([]store.Record, error) {
	list, err := w.Store.List(ctx, prefix)
	for _, rec := range list {
		w.saw(rec)
	}
	return list, err
}

func (w *witness) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if _, ok := term.WorkerOf(w.pool, key); !ok {
		return w.Store.Put(ctx, key, value, cond)
	}
	w.mu.Lock()
	prior, ok := w.seen[cond.Version]
	w.mu.Unlock()
	if !ok && cond.Version != "" {
		prior.Horizon = -1
	}
	a := attempt{value, cond.Version, prior, ledger.Boot()}
	if w.unwritten && a.prior.Owner != "" && a.prior.Owner == read(value).Owner {
		now := time.Now()
		return store.Record{Key: key, Value: value, Version: cond.Version, Written: now, Read: now}, nil
	}
	rec, err := w.Store.Put(ctx, key, value, cond)
	if err == nil {
		w.saw(rec)
		w.granted(key, a)
	}
	w.try(key, a, err == nil)
	return rec, err
}

// try remembers a Put until it is acknowledged.
func (w *witness) try(key string, a attempt, acknowledged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if acknowledged {
		delete(w.tried, key)
		return
	}
	if w.tried == nil {
		w.tried = map[string]attempt{}
	}
	w.tried[key] = a
}

// saw remembers what a version stands for.
func (w *witness) saw(rec store.Record) {
	if _, ok := term.WorkerOf(w.pool, rec.Key); !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[store.Version]term.Record{}
	}
	w.seen[rec.Version] = read(rec.Value)
}

// granted says what the store has acknowledged.
func (w *witness) granted(key string, a attempt) {
	n, _ := term.WorkerOf(w.pool, key)
	r := read(a.value)
	e := ledger.Event{Event: ledger.Granted, Worker: n, Term: r.Term, Owner: r.Owner, Prior: a.prior.Horizon, Horizon: r.Horizon, Asked: a.asked}
	say(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Owner != "" && a.prior.Owner != r.Owner {
		w.last = e
	}
}

// twin is the fault of two generators for one grant.
func (w *witness) twin(l firn.Layout) *firn.Generator {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, err := firn.NewGenerator(l, firn.Grant{Worker: w.last.Worker, Base: w.last.Prior, Horizon: w.last.Horizon}, nil)
	if err != nil {
		panic(err)
	}
	return g
}

func read(value []byte) (r term.Record) {
	if len(value) > 0 {
		if err := json.Unmarshal(value, &r); err != nil {
			panic(err)
		}
	}
	return r
}

// watch says how the lease's state changes.
func watch(ids *lease.Lease) {
	var told ledger.Event
	for ; ; time.Sleep(2 * time.Millisecond) {
		s := ids.State()
		e := ledger.Event{Event: ledger.Changed, Phase: phase(s), Worker: s.Worker, Term: s.Term, Degraded: s.StoreAway}
		if s.Err != nil {
			e.Kind = kind(s.Err)
		}
		if e == told {
			continue
		}
		told = e
		if s.Err != nil {
			e.Text = s.Err.Error()
		}
		e.LeftMS = s.Left(time.Now().Add(-s.Offset)).Milliseconds()
		say(e)
	}
}

// phase says where a lease stands.
func phase(s lease.State) string {
	var forgot *store.ForgotError
	switch {
	case !s.LeasedAt.IsZero():
		return "holding"
	case errors.As(s.Err, &forgot):
		return "forgotten"
	}
	return "without a worker"
}

var saying sync.Mutex

// say prints an event. It returns when the line is in the pipe.
func say(e ledger.Event) {
	e.Boot = ledger.Boot()
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	saying.Lock()
	defer saying.Unlock()
	if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
		os.Exit(1) // the test has gone
	}
}

// kind sorts errors.
func kind(err error) string {
	var outage *lease.OutageError
	var dry *sequence.OutageError
	var forgot *store.ForgotError
	var full *term.FullError
	var early *term.NotYetError
	var away *term.AwayError
	var spent *firn.HorizonError
	switch {
	case errors.As(err, &outage), errors.As(err, &dry):
		return ledger.Outage
	case errors.As(err, &forgot):
		return ledger.Forgot
	case errors.As(err, &full), errors.As(err, &early):
		return ledger.Full
	case errors.As(err, &away):
		return ledger.Away
	case errors.As(err, &spent):
		return ledger.Spent
	case errors.Is(err, firn.ErrClosed):
		return ledger.Shut
	case errors.Is(err, context.Canceled):
		return ledger.Ended
	}
	return ledger.Other
}
