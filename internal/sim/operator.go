package sim

import (
	"context"
	"time"

	"github.com/firn-id/firn/internal/term"
	operator "github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// releaseWorker is an operator taking a worker away from its holder.
func (w *world) releaseWorker(p *pool, n int64) {
	r := w.store.records[term.KeyWorker(p.name, n)]
	if r == nil || r.worker.Owner == "" {
		return
	}
	w.total.Faults[released]++
	e := &errand{by: w.newOperator(), what: "operator releases a worker", alone: w.chance(0.5)}
	w.logf("operator: releases worker %d of %s", n, p.name)
	w.do(e, func(ctx context.Context, s store.Store) error {
		return operator.Release(ctx, s, p.name, n)
	}, func(error) {})
}

// write is an operator's write of a counter.
func (w *world) write(s *memory, key string, value []byte, v store.Version) {
	_, _ = s.put(nil, key, value, store.Condition{Version: v}, w.newVersion()) // somebody else's was first: it is looked at again
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
	if w.documents && !replace { // who has read the definition a moment ago does not see that counters were raised
		for _, p := range w.procs {
			w.restart(p, p.kill)
		}
	}
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
		if w.store.identity != "" && w.chance(0.3) { // it is another server
			w.store.identity += "'"
		}
		if w.series {
			w.repairCounter(w.store)
		}
		w.after(w.upTo(500*time.Millisecond), w.recover)
	})
}

// recover is an operator who makes the store's pools safe, and begins anew after an error,
// or when that was broken off.
func (w *world) recover() {
	if !w.leases && !w.documents {
		w.letIn()
		return
	}
	e := &errand{by: w.newOperator(), what: "operator recovers", alone: true, latest: true}
	if w.chance(0.1) {
		w.after(w.upTo(3*time.Second), func() {
			if e.by.life == 0 && w.cutOff {
				w.total.Faults[brokenOff]++
				w.logf("operator: broken off")
				e.by.life++
				w.recover()
			}
		})
	}
	w.do(e, func(ctx context.Context, s store.Store) error {
		if w.leases {
			if _, err := operator.Recover(ctx, s, w.rules.Outage); err != nil {
				return err
			}
		}
		if w.documents {
			return w.recoverSeries(ctx, s)
		}
		return nil
	}, func(err error) {
		e.by.life++
		if err != nil {
			w.after(w.upTo(time.Second), w.recover)
			return
		}
		w.letIn()
	})
}

func (w *world) letIn() {
	w.logf("operator: lets everybody back in")
	w.cutOff, w.wentBack = false, false
	w.store.firm = len(w.store.log)
	if w.chance(0.3) {
		w.heal()
	}
}
