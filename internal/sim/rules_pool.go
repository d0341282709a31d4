package sim

import (
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// Rules of what operators do to pools, and mutants around package pool.

var operatorRules = []rule{
	{"nobody but the owner writes a record without raising its term", []mutant{
		{name: "a restore keeps owner and term", in: restoring, errand: freed(func(r *term.Record, was term.Record) {
			r.Term, r.Owner, r.Name, r.TTL = was.Term, was.Owner, was.Name, was.TTL
		})},
		{name: "a restore raises the floor alone", in: restoring, errand: func(e *errand, rq *request) (reply, bool) {
			_, _, worker := e.w.poolOf(rq.key)
			return reply{err: errSkipped}, rq.kind == put && worker && e.latest
		}},
	}},
	{"an operator's release keeps the horizon", []mutant{
		{name: "an operator's release lowers the horizon", errand: freed(func(r *term.Record, _ term.Record) { r.Horizon = 0 })},
	}},
	{"a restore raises the floor above the store's time, the outage budget and the bound on clocks", []mutant{
		{name: "a restore raises the floor to now", in: restoring, errand: lowered(func(e *errand) time.Duration { return e.w.rules.Outage + e.w.rules.Skew })},
	}},
	{"processes are cut off while a store is restored", []mutant{
		{name: "processes are at work while the store is restored", notCutOff: true, in: restoring},
	}},
}

var poolRules = []rule{
	{"a store that is gone is not a new one: a pool that its store lacks is created above all that it may have granted", []mutant{
		{name: "a pool is created anew without a floor", in: dropping, errand: pooled(func(_ *errand, p *term.Pool) { p.Floor = 0 })},
		{name: "a pool is created anew by the outage budget of whoever creates it", in: droppingLong, errand: lowered(func(*errand) time.Duration {
			return term.OutageDurable - time.Second
		})},
	}},
	{"a pool starts above the store's floor: who creates it reads that, and who takes a worker reads it again", []mutant{
		{name: "nobody looks at the store's floor", kind: embedded, in: embeddedRestored, errand: func(_ *errand, rq *request) (reply, bool) {
			return reply{rec: store.Record{Key: rq.key}}, rq.kind == get && rq.key == term.KeyStore
		}, event: func(h *holder, e term.Event) term.Event {
			if _, ok := e.(term.Found); ok && h.p.Doing.For == term.ConfirmStore {
				return term.Found{Record: store.Record{Key: term.KeyStore}}
			}
			return e
		}},
	}},
	{"a pool is created at once only where nothing of one is left", []mutant{
		{name: "a pool is created at once where records of workers are left", in: unpooling, errand: func(e *errand, rq *request) (reply, bool) {
			return reply{}, rq.kind == list && strings.HasSuffix(rq.key, "/") && rq.key != term.KeyPools && !e.latest
		}},
	}},
	{"a pool is usable by a second write, on the version of the first", []mutant{
		{name: "a pool's second write ignores the version", in: creating, blindToo: true, blind: func(s *memory, _ *process, key string, value []byte, _ store.Condition) bool {
			p, err := term.ReadPool(store.Record{Value: value, Version: "?"})
			return err == nil && strings.HasPrefix(key, term.KeyPools) && p.Reserved == "" && p.Workers != ""
		}},
		{name: "a pool is created in one write", in: creating, errand: atOnce},
	}},
	{"other pools are looked at after a range is reserved", []mutant{
		{name: "other pools are looked at before a range is reserved", in: creating, errand: listFirst},
		{name: "other pools are not looked at", in: creating, errand: func(_ *errand, rq *request) (reply, bool) {
			return reply{}, rq.kind == list && rq.key == term.KeyPools
		}},
	}},
	{"a process that took a worker outside of its pool's range lets go of it", []mutant{
		{name: "the range is not looked at again after the acknowledgement", in: movingLate, event: func(h *holder, e term.Event) term.Event {
			return repooled(h, e, term.Confirming, func(p *term.Pool) { p.Workers = "0-15" })
		}},
	}},
	{"a pool gives up a worker when nobody holds it, and the clock has passed what it issued", []mutant{
		{name: "a worker is given up that somebody holds", in: moving, errand: func(_ *errand, rq *request) (reply, bool) {
			return reply{}, rq.kind == list && strings.HasSuffix(rq.key, "/worker/")
		}},
		{name: "a worker is given up that has issued ahead", in: moving, errand: func(e *errand, rq *request) (reply, bool) {
			if rq.kind != list || !strings.HasSuffix(rq.key, "/worker/") {
				return reply{}, false
			}
			recs := e.by.store.list(rq.key)
			for i := range recs {
				if r, err := term.ReadRecord(recs[i]); err == nil {
					r.Horizon = 0
					recs[i].Value = r.Encode()
				}
			}
			return reply{list: recs}, true
		}},
	}},
	{"a pool starts above what another one has issued by workers that it gets", []mutant{
		{name: "workers that another pool had are begun with anew", in: moving, errand: pooled(func(_ *errand, p *term.Pool) { p.Floor = 0 })},
	}},
	{"a pool belongs to one store: a copy of that is refused", []mutant{
		{name: "a copy of the store is not told from it", in: twinning, event: func(_ *holder, e term.Event) term.Event {
			if heard, ok := e.(term.Promised); ok {
				heard.Durability.Identity = "store"
				return heard
			}
			return e
		}},
	}},
}

// poolIn is the pool's record that a request writes.
func poolIn(rq *request) (p term.Pool, ok bool) {
	if rq.kind != put || !strings.HasPrefix(rq.key, term.KeyPools) || strings.Contains(rq.key[len(term.KeyPools):], "/") {
		return p, false
	}
	p, err := term.ReadPool(store.Record{Key: rq.key, Value: rq.value, Version: "sent"})
	return p, err == nil
}

// pooled changes the record of a pool that is written.
func pooled(change func(*errand, *term.Pool)) func(*errand, *request) (reply, bool) {
	return func(e *errand, rq *request) (reply, bool) {
		if p, ok := poolIn(rq); ok {
			change(e, &p)
			rq.value = p.Encode()
		}
		return reply{}, false
	}
}

// lowered lowers the floors that are written.
func lowered(by func(*errand) time.Duration) func(*errand, *request) (reply, bool) {
	return func(e *errand, rq *request) (reply, bool) {
		d := by(e)
		if rq.kind == put && rq.key == term.KeyStore {
			if all, err := term.ReadStore(store.Record{Key: rq.key, Value: rq.value, Version: "sent"}); err == nil {
				rq.value = term.Store{Floor: all.Floor.Add(-d)}.Encode()
			}
		}
		if p, ok := poolIn(rq); ok && p.Floor > 0 {
			p.Floor = max(p.Floor-firn.Tick(d/e.w.rules.Layout.Unit()), 0)
			rq.value = p.Encode()
		}
		return reply{}, false
	}
}

// freed changes the record of a worker that an operator takes away.
func freed(change func(r *term.Record, was term.Record)) func(*errand, *request) (reply, bool) {
	return func(e *errand, rq *request) (reply, bool) {
		if _, _, ok := e.w.poolOf(rq.key); !ok || rq.kind != put {
			return reply{}, false
		}
		r, err := term.ReadRecord(store.Record{Key: rq.key, Value: rq.value, Version: "sent"})
		if was := e.by.store.records[rq.key]; err == nil && was != nil {
			change(&r, was.worker)
			rq.value = r.Encode()
		}
		return reply{}, false
	}
}

// atOnce leaves out the write that reserves a range: the one that uses it replaces what
// that one should have.
func atOnce(e *errand, rq *request) (reply, bool) {
	p, ok := poolIn(rq)
	switch {
	case ok && p.Reserved != "" && !p.Created():
		e.first = &rq.cond.Version
		return reply{rec: store.Record{Key: rq.key, Value: rq.value, Version: "left out", Read: e.by.store.clock()}}, true
	case ok && e.first != nil:
		rq.cond.Version, e.first = *e.first, nil
	}
	return reply{}, false
}

// listFirst answers the list of pools as it was before the range was reserved.
func listFirst(e *errand, rq *request) (reply, bool) {
	if p, ok := poolIn(rq); ok && p.Reserved != "" {
		e.listed = e.by.store.list(term.KeyPools)
	}
	return reply{list: e.listed}, rq.kind == list && rq.key == term.KeyPools
}
