package sim

import (
	"slices"
	"time"

	"github.com/firn-id/firn"
	driver "github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// This file clones a process that holds a worker, as it is when a virtual machine is cloned: its
// memory, its grant file and its clocks exist twice from then on. Both copies issue the same ids, so
// repeats are expected. None of them may come later than docs/guarantees.md says.

// A tape is what the loop of a holder was told: readings of clocks and signals. A copy of the loop
// that is told the same stands where the loop stands.
type tape struct {
	began  driver.Process // when the loop began
	told   []any
	replay bool // of a copy: it is told what is on the tape
}

// taped says something to the loop, or to a copy of it what the loop was told.
func taped[T any](h *holder, say func() T) T {
	if h.tape.replay {
		v := h.tape.told[0].(T)
		h.tape.told = h.tape.told[1:]
		return v
	}
	v := say()
	if h.w.faults.clones {
		h.tape.told = append(h.tape.told, v)
	}
	return v
}

// A cloning is that of a schedule.
type cloning struct {
	done  bool
	owner string    // the token that both copies have
	last  firn.Tick // no id above it may repeat
}

// clone clones one of those that hold a worker, once.
func (w *world) clone() {
	i := slices.IndexFunc(w.procs, func(p *process) bool {
		return p.alive && !p.paused && !p.wish && p.holder.gen != nil && p.holder.loop.lives()
	})
	if w.cloning.done || i < 0 {
		return
	}
	p := w.procs[i]
	h := p.holder
	w.total.Faults[cloned]++
	w.cloning = cloning{done: true, owner: h.p.Term.Have.Owner, last: w.sharedUntil(h)}
	w.logf("p%d is cloned: p%d", p.id, len(w.procs))
	host := *p.host
	q := &process{w: w, id: len(w.procs), host: &host, name: p.name, store: p.store, life: 1, alive: true, slept: p.slept}
	w.hosts, w.procs = append(w.hosts, &host), append(w.procs, q)
	began := h.tape.began
	q.holder = &holder{
		process: q, pool: h.pool, rules: h.rules, foreign: h.foreign, startWall: h.startWall, startBoot: h.startBoot,
		p: &began, before: h.before, knew: h.knew, lacks: h.lacks, rate: h.rate,
		tape: tape{h.tape.began, slices.Clone(h.tape.told), true},
	}
	began.Rules = &q.holder.rules
	if h.file != nil {
		file := *h.file
		file.unsynced = nil
		q.holder.file = &file
	}
	q.holder.awake(h)
}

// awake lets a copy of a holder continue where the holder stands.
func (c *holder) awake(h *holder) {
	w := c.w
	asks := h.asks
	c.loop.begin(w.threads, func() { driver.Run(c.p, c) })
	c.resume()
	*c.gen = *h.gen
	c.gen.h, c.gen.life = c, c.life
	w.check.all = append(w.check.all, c.gen)
	if asks { // its connection is not the clone's
		broken := c.answerTo(c.request)
		w.after(w.upTo(time.Second), func() { broken(term.Unknown{Err: errReset}) })
	}
	c.wantIDs()
}

// sharedUntil is the last tick that two copies of a holder can both issue: what is granted, or is
// about to be by a write that is under way or in doubt. Who asks the store loses the worker at the next extension,
// unless it is paused.
func (w *world) sharedUntil(h *holder) firn.Tick {
	last := max(h.p.Term.Have.Horizon, h.wantedHorizon())
	if !w.faults.pauses {
		last = min(last, w.tick(w.instant().Add(w.rules.Renew+2*ask)))
	}
	return last
}

// wantedHorizon is that of the last extension.
func (h *holder) wantedHorizon() firn.Tick {
	if len(h.wanted) == 0 {
		return 0
	}
	r, err := term.ReadRecord(store.Record{Value: h.wanted, Version: "sent"})
	if err != nil {
		panic(err)
	}
	return r.Horizon
}

// doubts: a copy has no answer to an extension. If the other copy wrote the same, each takes that for
// its own, and the next extension decides.
func (w *world) doubts(h *holder) {
	if h.p.Doing.For == term.ExtendWorker && w.cloning.done && h.p.Term.Have.Owner == w.cloning.owner {
		w.cloning.last = max(w.cloning.last, h.wantedHorizon())
	}
}

// twins reports whether a tick may have been issued by both, and counts it.
func (w *world) twins(a, b *generator, t firn.Tick) bool {
	if a.owner != b.owner || a.h == b.h || t > w.cloning.last {
		return false
	}
	w.total.Cloned++
	return true
}

// cloned schedules have a process that is cloned, and a store that answers. Who is killed takes another
// worker: with a grant file it would be a third copy.
func clonedOnce(s *setup) {
	quick(&s.rules)
	s.rules.Outage = time.Minute
	s.workers, s.founded, s.every, s.issues, s.lasts = 3, true, 2*time.Second, 20*time.Millisecond, 40*time.Second
	f := s.faults
	s.faults = faults{clones: true, pauses: f.pauses, kills: f.kills && !f.files, release: f.release, files: f.files}
}
