package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	driver "github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
)

const (
	look  = 250 * time.Millisecond
	lapse = driver.Lapse
	ask   = driver.Ask
)

// A holder holds a worker, term after term, by the loop that package lease runs.
type holder struct {
	*process
	pool    *pool
	rules   term.Rules
	file    *grantFile // nil: none
	foreign bool       // another program issues

	startWall time.Time // what the clock began with,
	startBoot time.Duration

	p       *driver.Process
	before  term.State // of its term before the last event,
	knew    string     // and the pool's id, as it knew it
	loop    coroutine
	until   time.Duration // boot time at which the wait under way ends
	signal  driver.Signal // what it returns
	request int           // number of the request under way
	asks    bool          // there is one
	wanted  []byte        // what the last extension writes
	tape    tape
	gen     *generator
	done    bool          // closed
	nudged  bool          // a caller has, and the loop was not told yet
	gaveUp  error         // why the run before ended by itself, though started again it might have a worker
	lacks   time.Duration // without a grant since
	rate    rate          // of requests
	naps    int           // waits in a row that end at once
}

func newHolder(p *process) *holder {
	w := p.w
	h := &holder{process: p, rules: w.rules, pool: w.pools[p.id%len(w.pools)], p: &driver.Process{}}
	h.rules.Pool = h.pool.name
	switch {
	case w.unequal && w.chance(0.5):
		h.rules.Outage = max(w.rules.Outage/4, time.Second)
	case (w.kind.lossy() && w.kind != shifting || w.rules.Outage == term.OutageDurable) && w.chance(0.2):
		h.rules.Outage = 0 // as long as the pool allows
	}
	switch {
	case w.wrong.shares && p.id > 0:
		h.file = w.procs[0].holder.file
	case w.faults.files && (w.wrong.shares || w.chance(0.5)):
		h.file = newGrantFile(w)
	}
	if w.held && w.chance(0.5) {
		h.foreign, h.file, h.rules.Borrow = true, nil, 0
	}
	if w.layout2 && p.id%2 == 1 {
		h.rules.Layout = layoutOfOthers
	}
	if w.fresh {
		h.rules.Choice = term.Fresh
	}
	return h
}

// choose draws which worker the process wants. Now and then that is another one than it wanted before.
func (h *holder) choose() {
	w, r, n := h.w, &h.rules, h.pool.range0.Count()
	if !w.faults.choices || w.fresh || h.life > 1 && w.chance(0.7) {
		return
	}
	switch r.Choice, r.Worker = term.Recycle, 0; {
	case w.chance(0.2):
		r.Choice = term.Fresh
	case w.chance(0.3):
		r.Choice, r.Worker = term.Insist, h.pool.range0.First+w.rng.Int64N(n)
	case w.chance(0.3):
		r.Choice, r.Worker = term.Prefer, h.pool.range0.First+w.rng.Int64N(n)
	}
}

func (h *holder) boot() {
	h.choose()
	h.gen, h.done, h.nudged, h.naps, h.wanted = nil, false, false, 0, nil
	h.before, h.knew = term.State{}, ""
	h.rate = rate{since: h.w.now}
	if h.gaveUp == nil || h.lacks < 0 { // to be started again and again, and stop each time, is no good
		h.lacks = h.w.now
	}
	h.startWall, h.startBoot = h.host.wall(), h.host.boot()
	p := driver.New(&h.rules, h.name, h.w.bits(), term.Now{Wall: h.startWall, Boot: h.startBoot}, term.View{})
	p.Look, p.Filed, p.Foreign, h.p = h.w.looks(), h.file != nil, h.foreign, &p
	h.open()
}

// looks is how often processes look at the clocks; not always as often as in package lease,
// for schedules that last.
func (w *world) looks() time.Duration { return max(look, w.rules.Renew/12) }

// start runs the loop, once it is known what the store promises.
func (h *holder) start(seen term.View) {
	h.p.View = seen
	if h.file != nil {
		if left, ok := h.left(); ok && h.p.Adopt(left, h.host.boot()) == nil {
			h.w.total.Resumed++
		}
	}
	h.tape = tape{began: *h.p}
	h.loop.begin(h.w.threads, func() { driver.Run(h.p, h) })
	h.resume()
}

// resume goes on with the loop, until it waits again or ends.
func (h *holder) resume() {
	if h.gen != nil && h.w.chance(0.2) {
		h.gen.issue()
	}
	if !h.loop.resume() {
		h.ended()
		return
	}
	turn, life := h.loop.turn, h.life
	h.w.at(h.host.when(h.until), func() {
		h.soon(life, func() {
			if turn == h.loop.turn {
				h.resume()
			}
		})
	})
}

// Clocks reads the system's clocks.
func (h *holder) Clocks() term.Now {
	return taped(h, func() term.Now { return term.Now{Wall: h.host.wall(), Boot: h.host.boot()} })
}

func (h *holder) Seed() [32]byte { return taped(h, h.w.bits) }

// Wait stands still until the world goes on.
func (h *holder) Wait(until time.Duration) (s driver.Signal) {
	if h.tape.replay = h.tape.replay && len(h.tape.told) > 0; !h.tape.replay {
		h.stand(until)
	}
	s = taped(h, func() driver.Signal { return h.signal })
	h.signal, h.asks = driver.Signal{}, h.asks && s.Answer == nil
	return s
}

// stand lets time pass until something happens, or the boot clock says until.
func (h *holder) stand(until time.Duration) {
	if h.naps++; until > h.host.boot() {
		h.naps = 0
	}
	if h.naps > 3 {
		h.w.fail(misstep, "p%d: waits in vain, in phase %s", h.id, h.p.Term.Phase)
		panic("the loop spins")
	}
	h.until = until
	h.loop.stand()
}

// Send asks the store. Of what comes back the first counts.
func (h *holder) Send(do term.Action, patience time.Duration) {
	h.request++
	if do.For == term.ExtendWorker {
		h.wanted = do.Value
	}
	if h.asks = true; h.tape.replay {
		return
	}
	h.rate.count(h)
	h.w.check.sent(h, do)
	rq := request{kind: kinds[do.Op], key: do.Key, value: do.Value, cond: do.Cond, taking: do.For == term.TakeWorker}
	answer := h.answerTo(h.request)
	h.w.send(h.process, rq, patience, func(r reply) { answer(r.ofTerm(rq.kind)) })
}

var kinds = map[term.Op]kind{term.Get: get, term.List: list, term.Put: put, term.Ask: promise}

// answerTo returns what takes the answer to a request: only the first counts, and none
// to an earlier one.
func (h *holder) answerTo(request int) func(term.Event) {
	life := h.life
	return func(e term.Event) {
		if request != h.request {
			return
		}
		h.soon(life, func() {
			if request != h.request || !h.loop.lives() {
				return
			}
			h.request++
			if _, ok := e.(term.Unknown); ok {
				h.w.doubts(h)
			}
			h.signal.Answer = e
			h.resume()
		})
	}
}

// Cancel breaks off the request under way; now and then the reply is just coming in.
func (h *holder) Cancel() {
	if h.w.chance(0.3) {
		return
	}
	answer := h.answerTo(h.request)
	h.w.after(0, func() { answer(term.Unknown{Err: errStopped}) })
}

// ofTerm is what the machine is told of a reply.
func (r reply) ofTerm(k kind) term.Event {
	if r.err != nil {
		return driver.Failed(r.err)
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

// Forgotten says whether the file of an embedded store was replaced.
func (h *holder) Forgotten() error {
	if h.p.View.Durability.NoticesLoss && h.store.replaced() {
		return errReplaced
	}
	return nil
}

// NewGenerator makes the generator of a term.
func (h *holder) NewGenerator(grant firn.Grant, now time.Time) (driver.Generator, error) {
	if err := h.rules.Layout.Check(now); err != nil {
		return nil, err
	}
	if h.tape.replay {
		h.gen = &generator{h: h} // until it is a copy
		return h.gen, nil
	}
	h.gen = newGenerator(h, grant, now)
	return h.gen, nil
}

// Show checks what the machine decided.
func (h *holder) Show(p *driver.Process) {
	w, s := h.w, &p.Term
	if h.tape.replay {
		return
	}
	w.total.Steps++
	if w.trace != nil {
		w.logf("p%d: %s: %s, worker %d, (%d, %d], next %s %s", h.id, told(p.Event), s.Phase, s.Worker, s.Base, s.Have.Horizon, ops[p.Doing.Op], p.Doing.Key)
	}
	w.check.stepped(h)
	w.check.lacking(h, p.Event)
	h.before, h.knew = p.Term, p.PoolID
	if s.Over() {
		h.gen, h.gaveUp = nil, nil
		w.logf("p%d: %s: %v", h.id, s.Phase, s.Err)
		w.check.over(h)
	}
}

var ops = [...]string{"nothing", "get", "list", "put", "ask", "sleep"}

// now is what the process's own clocks say.
func (h *holder) now() term.Now { return h.p.Now(h.host.boot()) }

// ended is what follows when the loop has ended.
func (h *holder) ended() {
	if h.wish {
		h.finish()
		return
	}
	// What a process knows of another pool of that name is for an operator to remove.
	err, pool := h.p.Term.Err, h.w.store.record(h.pool)
	if h.p.Term.Phase == term.Refused || pool != nil && pool.pool.ID == h.p.PoolID {
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
}

// nudge is what a caller does that finds the grant used up.
func (h *holder) nudge() {
	s := &h.p.Term
	if !h.loop.lives() || h.nudged || s.Degraded() || s.Err != nil && s.Phase != term.Lost {
		return
	}
	h.nudged = true
	h.after(0, func() {
		h.nudged = false
		if h.loop.lives() {
			h.signal.Nudged = true
			h.resume()
		}
	})
}

// quit closes the lease. That it does not take much longer than a request is a promise.
func (h *holder) quit() {
	if !h.loop.lives() {
		h.finish()
		return
	}
	left := int(2 * ask / h.p.Look)
	var watch func()
	watch = func() {
		if left--; left < -8 && !h.done {
			h.w.fail(misstep, "p%d: does not close, in phase %s", h.id, h.p.Term.Phase)
			return
		}
		h.after(h.p.Look, watch)
	}
	h.after(h.p.Look, watch)
	h.signal.Stop = true
	h.resume()
}

// finish ends a holder that closes.
func (h *holder) finish() {
	h.over()
	h.done = true
	h.closed()
}

// over: the process has ended. Its loop ends where it waits.
func (h *holder) over() {
	h.request++
	h.gen, h.signal = nil, driver.Signal{}
	h.loop.end()
}

// killed: no goroutine of this run hands out anything any more.
func (h *holder) killed() {
	for _, g := range h.w.check.all {
		g.killed = g.killed || g.h == h
	}
}
