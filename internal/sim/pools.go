package sim

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/opening"
	"github.com/firn-id/firn/internal/term"
	operator "github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A pool is one of a world's, as the world knows it: be it created or not.
type pool struct {
	name    string
	key     string     // of its record
	range0  term.Range // that it has to begin with
	existed bool       // once
	floor   firn.Tick  // the highest that it ever had
	busy    int        // operators at work on it
}

var poolNames = []string{"pool", "mail", "photos"}

func newPools(w *world) {
	for i := range max(w.setup.pools, 1) {
		p := &pool{name: poolNames[i], key: term.KeyPool(poolNames[i])}
		p.range0 = term.Range{First: w.first, Last: w.first + max(w.workers, 1) - 1}
		if i > 0 && (w.setup.founded || w.chance(0.5)) { // else they want the same
			p.range0 = w.anyRange()
		}
		w.pools = append(w.pools, p)
	}
}

// anyRange draws a range of few workers.
func (w *world) anyRange() term.Range {
	first := w.rng.Int64N(6)
	return term.Range{First: first, Last: min(first+w.rng.Int64N(5), w.rules.Layout.Workers()-1)}
}

// poolOf returns the pool that a key of a record belongs to, and the number of the worker
// if it is one's.
func (w *world) poolOf(key string) (p *pool, worker int64, ok bool) {
	for _, p := range w.pools {
		if n, ok := term.WorkerOf(p.name, key); ok {
			return p, n, true
		}
	}
	return nil, 0, false
}

// record is a pool's record, or nil.
func (s *memory) record(p *pool) *stored { return s.records[p.key] }

// anyPool draws one.
func (w *world) anyPool() *pool { return w.pools[w.rng.IntN(len(w.pools))] }

// created reports whether processes can lease from a pool.
func (s *memory) created(p *pool) bool {
	r := s.record(p)
	return r != nil && r.pool.Created()
}

// newOperator is a person, or a job, with a way to the store.
func (w *world) newOperator() *process {
	return &process{w: w, id: -1, name: "operator", store: w.store, operates: true}
}

// operate lets an operator do something. It may be killed at any request.
func (w *world) operate(what string, work func(context.Context, store.Store) error, then func(error)) *errand {
	e := &errand{by: w.newOperator(), what: what}
	w.logf("operator: %s", what)
	w.do(e, work, then)
	if !w.calm && w.scene == nil && w.chance(0.2) {
		w.after(w.upTo(12*w.fast), func() {
			w.total.Faults[brokenOff]++
			w.logf("operator: %s: broken off", what)
			e.by.life++
			then(errStopped)
		})
	}
	return e
}

// missed: a process finds that a pool is not there. Somebody creates it; now and then two
// do.
func (w *world) missed(p *pool) {
	if w.store.created(p) || p.busy > 1 || p.busy > 0 && w.chance(0.8) {
		return
	}
	p.busy++
	w.after(pick(w.rng, 0, w.upTo(time.Second), w.shortSpan()/4), func() { w.create(p) })
}

// create creates a pool: carefully, unless it is known that there was none.
func (w *world) create(p *pool) {
	atOnce := !p.existed && !w.loses() && w.chance(0.6)
	// This one does not know, and is refused for what is left, unless that is lost as well.
	if w.faults.unpool && !w.loses() && len(w.store.list(p.key+"/")) > 0 {
		atOnce = w.chance(0.5)
	}
	var o operator.Options
	o.Layout, o.First, o.Workers = w.rules.Layout, p.range0.First, p.range0.Count()
	if o.Outage = w.rules.Outage; !atOnce && o.Outage <= term.OutageDurable {
		o.Outage = 0
	}
	lives := true
	done := func(err error) {
		if lives {
			lives = false
			p.busy--
		}
		var overlap *operator.OverlapError
		if errors.As(err, &overlap) && w.chance(0.7) {
			p.range0 = w.anyRange()
		}
	}
	work, what := operator.Ensure, "ensures "
	if atOnce {
		work, what = operator.Create, "creates "
	}
	e := w.operate(what+p.name, func(ctx context.Context, s store.Store) error {
		_, err := work(ctx, s, p.name, &o)
		return err
	}, done)
	e.latest = !atOnce
	w.total.Faults[creations]++
}

// loses reports whether the store may lose a pool so that nothing of it is left, without
// being repaired: then nobody can know that there was none.
func (w *world) loses() bool { return w.faults.drop || w.kind.lossy() }

// change changes the range of a pool, or creates it.
func (w *world) change(p *pool) {
	if !w.store.created(p) {
		w.missed(p)
		return
	}
	to := w.anyRange()
	tries := 0
	var again func()
	again = func() {
		tries++
		w.total.Faults[ranged]++
		w.operate("sets the workers of "+p.name+" to "+to.String(), func(ctx context.Context, s store.Store) error {
			_, err := operator.SetWorkers(ctx, s, p.name, to.First, to.Last)
			return err
		}, func(err error) {
			var used *operator.InUseError
			if errors.As(err, &used) && tries < 5 {
				w.after(pick(w.rng, w.around(time.Second), w.around(w.rules.TTL), w.around(w.rules.Outage)), again)
			}
		})
	}
	again()
}

// unpool: somebody removes a pool's record, and some of those of its workers.
func (w *world) unpool(p *pool) {
	s := w.store
	if s.record(p) == nil || p.busy > 0 || w.chance(0.7) {
		return
	}
	w.logf("the record of pool %s is removed", p.name)
	w.total.Faults[unpooled]++
	w.forgot = true
	s.remove(p.key)
	for _, rec := range s.list(p.key + "/") {
		if w.chance(0.3) {
			s.remove(rec.Key)
		}
	}
	if w.chance(0.5) {
		w.after(w.shortSpan()/4, w.procs[w.rng.IntN(len(w.procs))].boot)
	}
}

// twin: the store is copied, and some processes use the copy.
func (w *world) twin() {
	if w.copy == nil {
		for _, p := range w.pools {
			if r := w.store.record(p); r != nil && r.pool.Store == "" {
				return // nothing tells a copy of it: a limit
			}
		}
		if r := w.store.records[counters[0]]; r != nil && r.counter.Store == "" {
			return
		}
		w.total.Faults[twinned]++
		w.logf("the store is copied")
		w.copy = w.store.copy()
		w.copy.identity = "copy"
	}
	p := w.procs[w.rng.IntN(len(w.procs))]
	p.strays = !p.strays
	w.restart(p, p.kill)
}

// open opens the pool as package lease does. An embedded store's first pool is created with
// few workers, not all: they are to meet.
func (h *holder) open() {
	how := opening.Opening{
		Pool: h.pool.name, Layout: h.rules.Layout,
		Create: operator.Options{
			Layout: h.rules.Layout, Outage: h.w.rules.Outage, First: h.pool.range0.First,
			Workers: min(h.pool.range0.Count(), h.rules.Layout.Workers()),
		},
		Saved: h.saved,
	}
	var seen term.View
	asked := h.now().Boot
	h.w.do(&errand{by: h.process, what: h.name + " opens"}, func(ctx context.Context, s store.Store) (err error) {
		seen, _, err = how.Open(ctx, s, asked)
		return err
	}, func(err error) { h.opened(seen, err) })
}

// saved is what the grant file says of the store.
func (h *holder) saved() (p store.Durability, l firn.Layout, ok bool) {
	left, ok := h.left()
	return left.Durability, h.rules.Layout, ok
}

// opened goes on with what came of the opening.
func (h *holder) opened(seen term.View, err error) {
	if h.done || h.wish {
		return
	}
	var missing *term.MissingPoolError
	switch {
	case errors.As(err, &missing):
		h.w.missed(h.pool)
		h.refused(err)
		return
	case err != nil && opening.Answered(err):
		h.refused(err)
		return
	case err != nil:
		h.process.fails()
		return
	}
	h.start(seen)
	if h.alive {
		h.wantIDs()
	}
}

// refused ends a process that cannot open.
func (h *holder) refused(err error) {
	h.gaveUp = err
	h.w.logf("p%d cannot open: %v", h.id, err)
	h.process.fails()
}
