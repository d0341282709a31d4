package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

const (
	look  = 250 * time.Millisecond // as package lease has it
	lapse = 10 * time.Second
	ask   = 5 * time.Second
)

// A holder holds a worker, term after term. It drives the machine as package
// lease does.
type holder struct {
	*process
	pool  *pool
	rules term.Rules
	file  *grantFile // nil: none

	clock     term.Clock
	startWall time.Time // what the clock began with,
	startBoot time.Duration
	poolID    string
	view      term.View
	known     time.Time // the store's clock
	knownAt   time.Duration
	begun     bool // the first worker was taken
	terms     int
	fails     int

	s       term.State
	do      term.Action
	turn    int // number of the action under way
	inTerm  bool
	began   bool // this term has granted something
	gen     *generator
	parting bool // to be closed as soon as the action in flight is answered
	done    bool // closed
	nudged  bool
	gaveUp  error         // why the run before ended by itself, though started again it might have a worker
	lacks   time.Duration // without a grant since
	rate    rate          // of requests
	naps    int           // sleeps in a row that end at once

	// For mutants.
	sent   term.Action   // the last Put
	meant  []byte        // its value before a mutant had it
	sentAt term.Now      // when it was sent
	cached *store.Record // the pool's record as it was read first
}

func newHolder(p *process) *holder {
	w := p.w
	h := &holder{process: p, rules: w.rules, pool: w.pools[p.id%len(w.pools)]}
	h.rules.Pool = h.pool.name
	if w.unequal && w.chance(0.5) {
		h.rules.Outage = max(w.rules.Outage/4, time.Second)
	}
	switch {
	case w.mutant.sharedFile && p.id > 0:
		h.file = w.procs[0].holder.file
	case w.faults.files && (w.mutant.sharedFile || w.chance(0.5)):
		h.file = newGrantFile(w)
	}
	if w.layout2 && p.id%2 == 1 {
		h.rules.Layout = layoutOfOthers
	}
	switch n := h.pool.range0.Count(); {
	case w.fresh:
		h.rules.Choice = term.Fresh
	case !w.faults.choices:
	case w.chance(0.2):
		h.rules.Choice = term.Fresh
	case w.chance(0.3):
		h.rules.Choice, h.rules.Worker = term.Insist, h.pool.range0.First+w.rng.Int64N(n)
	case w.chance(0.3):
		h.rules.Choice, h.rules.Worker = term.Prefer, h.pool.range0.First+w.rng.Int64N(n)
	}
	return h
}

func (h *holder) boot() {
	h.view, h.s = term.View{}, term.State{}
	h.poolID, h.known, h.knownAt, h.begun, h.terms, h.fails = "", time.Time{}, 0, false, 0, 0
	h.inTerm, h.gen, h.parting, h.done, h.nudged, h.naps = false, nil, false, false, false, 0
	h.rate = rate{since: h.w.now}
	if h.gaveUp == nil || h.lacks < 0 { // to be started again and again, and stop each time, is no good
		h.lacks = h.w.now
	}
	h.startWall, h.startBoot = h.host.wall(), h.host.boot()
	h.clock = term.NewClock(h.startWall, h.startBoot)
	h.open()
}

// killed: no goroutine of this run hands out anything any more.
func (h *holder) killed() {
	for _, g := range h.w.check.all {
		g.killed = g.killed || g.h == h
	}
}

// over: the process has ended.
func (h *holder) over() {
	h.turn++
	h.inTerm, h.gen = false, nil
}

// finish ends a holder that closes.
func (h *holder) finish() {
	h.over()
	h.done = true
	h.closed()
}

// now is what the process's own clocks say.
func (h *holder) now() term.Now {
	boot := h.host.boot()
	return term.Now{Wall: h.clock.At(boot), Boot: boot}
}

func (h *holder) follow() term.Now {
	boot := h.host.boot()
	var known time.Time
	if !h.rules.LocalClock && !h.known.IsZero() {
		known = h.known.Add(boot - h.knownAt)
	}
	if h.w.mutant.steppingClock {
		h.clock = term.NewClock(h.host.wall(), boot)
	} else {
		h.clock = h.clock.Follow(h.host.wall(), boot, known, h.rules.Skew)
	}
	return h.now()
}

// term begins a term.
func (h *holder) term() {
	if h.wish {
		h.finish()
		return
	}
	h.inTerm, h.began, h.gen = true, false, nil
	h.s = term.Start(h.w.bits(), h.name, h.poolID)
	if h.file != nil && h.terms == 0 {
		if v, mark, ok := h.file.adopt(h); ok {
			h.w.total.Resumed++
			h.s, h.poolID = term.Resume(h.w.bits(), h.name, v, mark), v.PoolID
		}
	}
	h.terms++
	h.follow()
	h.step(term.Begin{View: h.view})
}

// step tells the machine what came of the last action, and does the next.
func (h *holder) step(e term.Event) {
	m := h.w.mutant
	if h.parting {
		h.parting = false
		h.turn++
		h.decide(h.now(), e)
		h.stop()
		return
	}
	if h.gen != nil && h.w.chance(0.2) {
		h.gen.issue()
	}
	if m.event != nil {
		e = m.event(h, e)
	}
	now := h.now()
	if m.now != nil {
		now = m.now(h, now, e)
	}
	do := h.decide(now, e)
	h.note(e)
	h.allow(do)
	h.w.check.stepped(h, do)
	if h.s.Over() {
		h.ended()
		return
	}
	h.perform(do)
}

func (h *holder) decide(now term.Now, e term.Event) (do term.Action) {
	h.w.total.Steps++
	was := h.s.Phase
	h.s, do = h.s.Step(&h.rules, now, e)
	if h.w.trace != nil {
		h.w.logf("p%d: %s: %s -> %s, worker %d, (%d, %d], next %s %s", h.id, told(e), was, h.s.Phase, h.s.Worker, h.s.Base, h.s.Have.Horizon, ops[do.Op], do.Key)
	}
	meant := do.Value
	if h.w.mutant.action != nil {
		do = h.w.mutant.action(h, do)
	}
	if do.Op == term.Put {
		h.sent, h.sentAt, h.meant = do, now, meant
	}
	return do
}

var ops = [...]string{"nothing", "get", "list", "put", "ask", "sleep"}

func (h *holder) note(e term.Event) {
	switch e := e.(type) {
	case term.Found:
		h.known, h.knownAt = e.Record.Read, h.host.boot()
	case term.Wrote:
		h.known, h.knownAt = e.Record.Read, h.host.boot()
	}
	if h.s.View.Known {
		h.view = h.s.View
	}
	if h.s.Pool.ID != "" {
		h.poolID = h.s.Pool.ID
	}
}

// allow lets the generator issue what the machine grants, and closes it with
// the term.
func (h *holder) allow(do term.Action) {
	g, ok := h.s.Grant()
	if m := h.w.mutant; m.grant != nil {
		g, ok = m.grant(h, do, g, ok)
	}
	if ok && h.file != nil {
		g.Horizon = h.file.marked(h, g)
	}
	switch {
	case ok && h.gen == nil:
		h.gen = newGenerator(h, g)
		h.began, h.begun = true, true
	case ok:
		h.gen.extend(g.Horizon)
	case h.gen != nil && h.s.Over():
		h.gen.close()
	}
}

// ended is what follows a term.
func (h *holder) ended() {
	h.inTerm = false
	h.turn++
	phase, err := h.s.Phase, h.s.Err
	h.gaveUp = nil
	h.w.logf("p%d: %s: %v", h.id, phase, err)
	h.w.check.over(h)
	if h.gen != nil {
		h.gen.close()
	}
	switch {
	case h.wish:
		h.finish()
		return
	case phase == term.Forgotten, phase == term.Refused && !h.begun:
		// What a process knows of another pool of that name is for an operator to remove.
		pool := h.w.store.record(h.pool)
		if phase == term.Refused || pool != nil && pool.pool.ID == h.poolID {
			h.gaveUp = err
		}
		var (
			soon *term.NotYetError
			wait time.Duration
			gone *term.MissingPoolError
		)
		if errors.As(err, &soon) && h.w.chance(0.9) {
			wait = soon.StartsAt.Sub(h.now().Wall) - h.w.around(2*time.Second)
		}
		if errors.As(err, &gone) || pool == nil {
			h.w.missed(h.pool)
		}
		h.process.failsUntil(wait) // Open fails, or the program sees that nothing will come any more
		return
	}
	if h.began {
		h.fails = 0
	}
	pause := min(100*time.Millisecond<<min(h.fails, 10), lapse)
	h.fails++
	h.after(h.w.upTo(pause), h.term)
}

func (h *holder) perform(do term.Action) {
	h.turn++
	h.do = do
	if do.Op == term.Sleep {
		h.naps++
		if do.Until > h.host.boot() {
			h.naps = 0
		}
		if h.naps > 3 {
			h.w.fail(misstep, "p%d: sleeps in vain, in phase %s", h.id, h.s.Phase)
			return
		}
		h.sleep(h.turn)
		return
	}
	h.naps = 0
	h.send(do)
	h.tend(h.turn)
}

// send asks the store. Of what comes back the first counts.
func (h *holder) send(do term.Action) {
	h.rate.count(h)
	life, turn := h.life, h.turn
	rq := request{key: do.Key, value: do.Value, cond: do.Cond}
	switch do.Op {
	case term.Get:
		rq.kind = get
	case term.List:
		rq.kind = list
	case term.Put:
		rq.kind = put
	case term.Ask:
		rq.kind = promise
	}
	rq.taking = do.Op == term.Put && h.s.Phase == term.Taking
	h.w.send(h.process, rq, h.patience(), func(r reply) {
		if life == h.life && turn == h.turn {
			h.soon(life, func() {
				if turn == h.turn {
					h.step(r.ofTerm(rq.kind))
				}
			})
		}
	})
}

// ofTerm is what the machine is told of a reply.
func (r reply) ofTerm(k kind) term.Event {
	var forgot *store.ForgotError
	switch {
	case r.err == nil:
	case errors.Is(r.err, store.ErrConflict):
		return term.Conflict{}
	case errors.As(r.err, &forgot):
		return term.Forgot{Err: r.err}
	default:
		return term.Unknown{Err: r.err}
	}
	switch k {
	case get:
		return term.Found{Record: r.rec}
	case list:
		return term.Listed{Records: r.list}
	case put:
		return term.Wrote{Record: r.rec}
	}
	return term.Promised{Durability: r.promise}
}

// patience is how long to wait for an answer: less where the grant is short.
func (h *holder) patience() time.Duration {
	grant, ok := h.s.Grant()
	left := h.w.begin(grant.Horizon + 1).Sub(h.now().Wall)
	if !ok || left <= 0 {
		return ask
	}
	return min(ask, max(left/3, look))
}

// tend looks after the generator while the store takes its time.
func (h *holder) tend(turn int) {
	h.after(h.w.looks(), func() {
		if turn != h.turn {
			return
		}
		h.follow()
		if h.gen != nil {
			h.gen.setClock(h.now().Wall)
			h.allow(term.Action{Op: term.Sleep})
		}
		h.tend(turn)
	})
}

// sleep waits for the action's time, and looks at the clocks on the way.
func (h *holder) sleep(turn int) {
	left := h.do.Until - h.host.boot()
	if left <= 0 {
		h.step(term.Woke{})
		return
	}
	if h.nudged {
		left = 0
	}
	wake := h.host.when(h.host.boot() + min(left, h.w.looks()))
	life := h.life
	h.w.at(wake, func() {
		h.soon(life, func() {
			if turn == h.turn {
				h.look(turn)
			}
		})
	})
}

// looks is how often processes look at the clocks; not always as often as the
// driver does, for schedules that last.
func (w *world) looks() time.Duration { return max(look, w.rules.Renew/12) }

func (h *holder) look(turn int) {
	now := h.follow()
	if h.gen != nil {
		h.gen.setClock(now.Wall)
		h.allow(term.Action{Op: term.Sleep})
	}
	switch {
	case h.view.Durability.NoticesLoss && h.store.replaced():
		h.step(term.Forgot{Err: errReplaced})
	case h.nudged:
		h.nudged = false
		h.step(term.Woke{})
	default:
		h.sleep(turn)
	}
}

// nudge is what a caller does that finds the grant used up.
func (h *holder) nudge() {
	if h.s.Degraded() || h.s.Err != nil && h.s.Phase != term.Lost || !h.inTerm || h.nudged {
		return
	}
	h.nudged = true
	if h.do.Op == term.Sleep {
		turn := h.turn
		h.after(0, func() {
			if turn == h.turn && h.inTerm {
				h.look(turn)
			}
		})
	}
}

// quit closes the lease: whatever came of the action in flight comes first.
func (h *holder) quit() {
	if !h.inTerm {
		h.finish()
		return
	}
	switch {
	case h.do.Op == term.Sleep:
	case h.w.chance(0.3): // the reply is just coming in
		h.parting = true
		return
	default:
		h.turn++
		h.decide(h.now(), term.Unknown{Err: errStopped})
	}
	h.stop()
}

// stop closes the generator for good and says so.
func (h *holder) stop() {
	var last firn.Tick
	if h.gen != nil {
		last = h.gen.end()
	}
	if h.file != nil && !h.w.mutant.staleFile {
		h.file.void()
	}
	if m := h.w.mutant; m.last != nil {
		last = m.last(h, last)
	}
	life := h.life
	h.after(ask, func() { // no more time to say goodbye
		if life == h.life && !h.done {
			h.finish()
		}
	})
	h.step(term.Stop{Last: last})
}
