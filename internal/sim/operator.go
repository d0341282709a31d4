package sim

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// releaseWorker is an operator taking a worker away from its holder.
func (w *world) releaseWorker(n int64) {
	key := term.KeyWorker(w.rules.Pool, n)
	rec := w.store.get(key)
	r, err := term.ReadRecord(rec)
	if err != nil || r.Owner == "" {
		return
	}
	s := w.store
	w.after(w.shortSpan()/4, func() {
		w.logf("operator: releases worker %d", n)
		w.total.Faults[released]++
		freed := r.Freed(0)
		if w.mutant.freed != nil {
			w.mutant.freed(&freed, r)
		}
		w.operate(s, key, freed.Encode(), rec.Version)
	})
}

// operate is an operator's write.
func (w *world) operate(s *memory, key string, value []byte, v store.Version) {
	_, _ = s.put(nil, key, value, store.Condition{Version: v}, w.newVersion()) // somebody else's was first: it is looked at again
}

// A restoration is an operator at work on a store that went back: as package
// lease does it, with time between any two requests.
type restoration struct {
	w        *world
	floor    time.Time
	raised   firn.Tick
	list     []store.Record
	first    bool
	rewrites int
}

// restore cuts everybody off, puts the store back, repairs it, and lets
// everybody back in. An embedded one is put back in its file, or in another one
// that replaces it: who has the old one open goes on with that, until it finds
// out.
func (w *world) restore(to int, replace bool) {
	if w.cutOff {
		return
	}
	w.total.Faults[restored]++ // what was sent before is from another history
	w.cutOff = true
	w.logf("operator: everybody is cut off")
	r := &restoration{w: w}
	if replace {
		w.total.Faults[removed]++
		w.store.gone = true
	}
	w.after(w.upTo(2*time.Second), func() {
		if replace {
			w.logf("the store's file is replaced")
			w.store = w.store.copy()
		}
		w.store.rollBack(min(to, len(w.store.log)))
		w.wentBack = true
		if w.series {
			w.repairCounter(w.store)
		}
		r.then(r.raiseStore)
	})
}

// then does the next step some time after.
func (r *restoration) then(do func()) { r.w.after(r.w.upTo(500*time.Millisecond), do) }

func (r *restoration) raiseStore() {
	w := r.w
	if !w.leases {
		r.done()
		return
	}
	rec := w.store.get(term.KeyStore)
	now := rec.Read
	if now.IsZero() {
		now = w.instant().Add(w.withinSkew()) // the operator's own clock
	}
	r.floor = now.Add(w.rules.Outage + w.restoreSkew())
	if w.mutant.lowFloor {
		r.floor = now
	}
	if all, err := term.ReadStore(rec); rec.Version != "" && err == nil && all.Floor.After(r.floor) {
		r.floor = all.Floor
	}
	w.operate(w.store, rec.Key, term.StoreFloor(r.floor), rec.Version)
	r.then(r.raisePool)
}

// restoreSkew is what a floor is above the operator's clock and the longest
// grant. Where the store has no clock of its own to bound grants by, two clocks
// may differ by twice their error.
func (w *world) restoreSkew() time.Duration {
	if w.kind == clocked {
		return w.rules.Skew
	}
	return 2 * w.rules.Skew
}

func (r *restoration) raisePool() {
	w := r.w
	r.raised = w.rules.Layout.Tick(r.floor)
	for _, rec := range w.store.list(w.keyWorkers) {
		if c, err := term.ReadRecord(rec); err == nil {
			r.raised = max(r.raised, c.Horizon)
		}
	}
	rec := w.store.get(w.keyPool)
	if rec.Version == "" { // the pool is forgotten, too: it will be founded above the store's floor
		r.then(r.done)
		return
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		w.fail(misstep, "operator: %v", err)
	}
	p = p.Raised(r.raised)
	r.raised = p.Floor
	w.operate(w.store, rec.Key, p.Encode(), rec.Version)
	r.first = true
	if w.mutant.floorAlone {
		r.then(r.done)
		return
	}
	r.then(r.look)
}

// look lists the workers, to rewrite those that are below the floor; the first
// time also all that somebody holds.
func (r *restoration) look() {
	r.list, r.rewrites = r.w.store.list(r.w.keyWorkers), 0
	r.then(r.rewrite)
}

func (r *restoration) rewrite() {
	w := r.w
	for len(r.list) > 0 {
		rec := r.list[0]
		r.list = r.list[1:]
		c, err := term.ReadRecord(rec)
		if err != nil {
			w.fail(misstep, "operator: %v", err)
		}
		if c.Horizon >= r.raised && (c.Owner == "" || !r.first) {
			continue
		}
		freed := c.Freed(r.raised)
		if w.mutant.keepOwner {
			freed.Term, freed.Owner, freed.Name, freed.TTL = c.Term, c.Owner, c.Name, c.TTL
		}
		w.operate(w.store, rec.Key, freed.Encode(), rec.Version)
		r.rewrites++
		r.then(r.rewrite)
		return
	}
	if r.first = false; r.rewrites > 0 {
		r.then(r.look)
		return
	}
	r.then(r.done)
}

func (r *restoration) done() {
	w := r.w
	w.logf("operator: lets everybody back in; floor %d", r.raised)
	w.cutOff, w.wentBack = false, false
	w.store.firm = len(w.store.log)
	if w.chance(0.3) {
		w.heal()
	}
}
