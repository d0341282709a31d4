package sim

import (
	"context"
	"strconv"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// An errand is what somebody does by package pool: an operator, or a process that opens
// its store. It is that code as it is, which stands still at each request until the world
// has answered it; so anything may happen between two, and it may end at any.
type errand struct {
	w     *world
	by    *process // that asks
	life  int      // of that
	what  string
	alone bool // nobody else reaches the store, and every request is answered

	// What package pool is told of the time is such that its bound on clocks, which is
	// term.Skew, comes out as the world's. Of the store's record it takes either the
	// latest instant that it may be, or the earliest.
	latest bool
	clock  time.Duration // error of the operator's own
	heard  time.Time     // what the store's clock said last, as package pool was told

	code  coroutine
	turn  int     // number of the request under way
	asks  request // that is
	reply reply   // to it
	err   error   // of the whole
	then  func(error)
}

// do begins an errand, and calls then with what came of it, unless whoever does it has
// ended before.
func (w *world) do(e *errand, work func(context.Context, store.Store) error, then func(error)) {
	e.w, e.life, e.then, e.clock = w, e.by.life, then, w.withinSkew()
	// One who finds that the store's clock is not the host's sets the wrong one first.
	ctx := record.WithClock(context.Background(), func() time.Time { return e.heard.Add(e.clock) })
	e.code.begin(w.threads, func() { e.err = work(ctx, remote{e}) })
	w.errands = append(w.errands, e)
	e.step()
}

// step goes on to the next request.
func (e *errand) step() {
	if e.code.resume() {
		e.send(e.asks)
		return
	}
	e.w.logf("%s: done: %v", e.what, e.err)
	e.then(e.err)
}

// send carries a request to the store. Of what comes back the first counts.
func (e *errand) send(rq request) {
	w := e.w
	e.turn++
	turn := e.turn
	deliver := func(r reply) {
		if turn != e.turn || e.life != e.by.life {
			return
		}
		e.by.soon(e.life, func() {
			if turn == e.turn {
				e.turn++
				e.reply = r
				e.step()
			}
		})
	}
	if !e.alone {
		w.send(e.by, rq, ask, deliver)
		return
	}
	w.after(w.upTo(500*time.Millisecond), func() {
		rq.version = w.newVersion()
		deliver(e.by.store.answer(e.by, rq))
	})
}

// end breaks it off.
func (e *errand) end() {
	e.turn++
	e.code.end()
}

// A remote is the store as package pool sees it.
type remote struct{ e *errand }

func (r remote) ask(rq request) reply {
	r.e.asks = rq
	r.e.code.stand()
	return r.e.reply
}

func (r remote) Get(_ context.Context, key string) (store.Record, error) {
	got := r.ask(request{kind: get, key: key})
	return r.e.read(got.rec), got.err
}

func (r remote) Put(_ context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	got := r.ask(request{kind: put, key: key, value: r.e.w.renamed(key, value), cond: cond})
	if got.err != nil {
		return store.Record{Key: key, Version: got.tried}, got.err
	}
	return r.e.read(got.rec), nil
}

func (r remote) List(_ context.Context, prefix string) ([]store.Record, error) {
	got := r.ask(request{kind: list, key: prefix})
	recs := make([]store.Record, len(got.list))
	for i, rec := range got.list {
		recs[i] = r.e.read(rec)
	}
	return recs, got.err
}

func (r remote) Durability(context.Context) (store.Durability, error) {
	got := r.ask(request{kind: promise})
	r.e.heard = time.Time{} // clocks are compared by a record that is read after this
	return got.promise, got.err
}

// added is what package pool adds to the store's time, where it has one, for the latest
// instant that it may be by the clock of any process.
const added = 2 * term.Skew

// read is a record with times by which package pool reckons with the world's bound on
// clocks.
func (e *errand) read(rec store.Record) store.Record {
	w := e.w
	defer func() { e.heard = rec.Read }()
	if rec.Key == "" {
		return rec
	}
	skew := w.rules.Skew
	blind := rec.Read.IsZero()
	if blind { // it would go by the clock of the machine that simulates
		rec.Read = w.instant().Add(e.clock)
		rec.Written = rec.Read // a store without a clock does not tell the dead
	}
	shift := term.Skew - skew
	switch {
	case isDated(rec.Key): // package document adds no bound of the world's
		shift = 0
	case e.latest && rec.Key == term.KeyStore: // two clocks may differ by twice their error
		shift = 2*skew - added
	case blind:
		shift -= skew
	}
	rec.Read = rec.Read.Add(shift)
	if !rec.Written.IsZero() {
		rec.Written = rec.Written.Add(shift)
	}
	return rec
}

// renamed gives a pool's record that package pool has made an id that a seed says.
func (w *world) renamed(key string, value []byte) []byte {
	if key == w.keySeries() {
		return w.renamedSeries(value)
	}
	p, err := term.ReadPool(store.Record{Value: value, Version: "sent"})
	if err != nil || p.ID == "" {
		return value
	}
	p.ID = w.renamedID(p.ID)
	return p.Encode()
}

func (w *world) renamedID(id string) string {
	if w.ids[id] == "" {
		name := "id" + strconv.Itoa(len(w.ids))
		w.ids[id], w.ids[name] = name, name
	}
	return w.ids[id]
}
