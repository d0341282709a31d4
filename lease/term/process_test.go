package term_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

const (
	look  = 250 * time.Millisecond // as package lease has it
	lapse = 10 * time.Second
)

var (
	errStopped = errors.New("context canceled")
	errGone    = errors.New("the file was removed")
)

// A process holds a worker, term after term. It drives the machine as package
// lease does, and can be stopped, paused, killed and started again.
type process struct {
	w    *world
	id   int
	host *host
	name string
	file *grantFile // nil: none

	async bool // a shifting store does not wait until what it writes is safe

	life    int // number of this run; what belongs to an earlier one is dropped
	alive   bool
	paused  bool
	backlog []func()      // what came while it was paused
	apart   time.Duration // the store is out of its reach before
	slept   time.Duration // Go's monotonic clock has stood still for so long

	rules   term.Rules
	clock   term.Clock
	poolID  string
	view    term.View
	known   time.Time // the store's clock
	knownAt time.Duration
	begun   bool // the first worker was taken
	terms   int
	fails   int

	s        term.State
	do       term.Action
	turn     int // number of the action under way
	inTerm   bool
	began    bool // this term has granted something
	gen      *generator
	wish     bool // to be closed
	parting  bool // as soon as the action in flight is answered
	nudged   bool
	lacks    time.Duration // without a grant since
	sent     term.Action   // the last Put
	meant    []byte        // its value before a mutant had it
	sentAt   term.Now
	cached   *store.Record // for mutants: the pool's record as it was read first
	requests rate
	naps     int // sleeps in a row that end at once
}

func newProcess(w *world, id int, h *host) *process {
	p := &process{w: w, id: id, host: h, name: fmt.Sprintf("p%d", id), rules: w.rules}
	if w.chance(0.2) && !w.mutant.oneToken {
		p.name = "twin"
	}
	switch {
	case w.mutant.sharedFile && id > 0:
		p.file = w.procs[0].file
	case w.faults.files && (w.mutant.sharedFile || w.chance(0.5)):
		p.file = &grantFile{}
	}
	if w.unequal && w.chance(0.5) {
		p.rules.Outage = max(w.rules.Outage/4, time.Second)
	}
	p.async = w.kind == shifting && w.chance(0.15)
	switch n := w.rules.Workers; {
	case !w.faults.choices:
	case w.chance(0.2):
		p.rules.Choice = term.Fresh
	case w.chance(0.3):
		p.rules.Choice, p.rules.Worker = term.Insist, w.rules.First+w.rng.Int64N(n)
	case w.chance(0.3):
		p.rules.Choice, p.rules.Worker = term.Prefer, w.rules.First+w.rng.Int64N(n)
	}
	return p
}

// after does something later unless this run is over by then. A process that is
// paused does it when it goes on.
func (p *process) after(d time.Duration, do func()) {
	life := p.life
	p.w.after(d, func() { p.soon(life, do) })
}

func (p *process) soon(life int, do func()) {
	switch {
	case life != p.life:
	case p.paused:
		p.backlog = append(p.backlog, do)
	default:
		do()
	}
}

// boot starts the process, if it is not running.
func (p *process) boot() {
	if p.alive {
		return
	}
	p.life++
	p.alive, p.paused, p.backlog, p.slept = true, false, nil, 0
	p.view = term.View{}
	p.poolID, p.known, p.knownAt, p.begun, p.terms, p.fails = "", time.Time{}, 0, false, 0, 0
	p.inTerm, p.gen, p.wish, p.parting, p.nudged, p.naps = false, nil, false, false, false, 0
	p.lacks, p.requests = p.w.now, rate{since: p.w.now}
	p.clock = term.NewClock(p.host.wall(), p.host.boot())
	p.w.logf("p%d starts at %s (true %s)", p.id, p.host.wall().Format("15:04:05.000"), p.w.instant().Format("15:04:05.000"))
	p.term()
	p.wantIDs()
}

// kill ends the process at once.
func (p *process) kill() {
	p.w.logf("p%d is killed", p.id)
	for _, g := range p.w.check.all {
		g.killed = g.killed || g.p == p
	}
	p.life++
	p.alive, p.paused, p.backlog, p.inTerm, p.gen = false, false, nil, false, nil
}

// pause stops the process for a while; suspend stops Go's monotonic clock too.
func (p *process) pause(d time.Duration, suspend bool) {
	if !p.alive || p.paused {
		return
	}
	p.w.logf("p%d is paused for %s", p.id, d)
	p.paused = true
	life, since := p.life, p.w.now
	p.w.after(d, func() {
		if life == p.life && p.paused {
			if suspend {
				p.slept += p.w.now - since
			}
			p.resume()
		}
	})
}

func (p *process) resume() {
	p.w.logf("p%d goes on", p.id)
	p.paused = false
	if p.gen != nil { // before its keeper looks at the clock
		p.gen.issue()
	}
	backlog, life := p.backlog, p.life
	p.backlog = nil
	if p.w.chance(0.5) {
		p.w.rng.Shuffle(len(backlog), func(i, j int) { backlog[i], backlog[j] = backlog[j], backlog[i] })
	}
	for _, do := range backlog {
		p.soon(life, do)
	}
}

// now is what the process's own clocks say.
func (p *process) now() term.Now {
	boot := p.host.boot()
	return term.Now{Wall: p.clock.At(boot), Boot: boot}
}

func (p *process) follow() term.Now {
	boot := p.host.boot()
	var known time.Time
	if !p.rules.Embedded && !p.known.IsZero() {
		known = p.known.Add(boot - p.knownAt)
	}
	p.clock = p.clock.Follow(p.host.wall(), boot, known, p.rules.Skew)
	return p.now()
}

// term begins a term.
func (p *process) term() {
	if p.wish {
		p.exit()
		return
	}
	p.inTerm, p.began, p.gen = true, false, nil
	p.s = term.Start(p.seed(), p.name, p.poolID)
	if p.file != nil && p.terms == 0 {
		if v, mark, ok := p.file.adopt(p); ok {
			p.s, p.poolID = term.Resume(p.seed(), p.name, v, mark), v.PoolID
		}
	}
	p.terms++
	p.step(term.Begin{View: p.view})
}

func (p *process) seed() (b [32]byte) {
	for i := range b {
		b[i] = byte(p.w.rng.Uint32())
	}
	return b
}

// step tells the machine what came of the last action, and does the next.
func (p *process) step(e term.Event) {
	m := &p.w.mutant
	if p.parting {
		p.parting = false
		p.turn++
		p.decide(p.now(), e)
		p.stop()
		return
	}
	if p.gen != nil && p.w.chance(0.2) {
		p.gen.issue()
	}
	if m.event != nil {
		e = m.event(p, e)
	}
	now := p.now()
	if m.now != nil {
		now = m.now(p, now, e)
	}
	was := p.s.Phase
	do := p.decide(now, e)
	p.note(e)
	p.allow(do)
	p.w.check.stepped(p, was, do)
	if p.s.Over() {
		p.ended()
		return
	}
	p.perform(do)
}

func (p *process) decide(now term.Now, e term.Event) (do term.Action) {
	p.w.steps++
	was := p.s.Phase
	p.s, do = p.s.Step(&p.rules, now, e)
	if p.s.Phase != was || p.w.trace != nil {
		p.w.logf("p%d: %T: %s -> %s, worker %d, (%d, %d], next %s %s", p.id, e, was, p.s.Phase, p.s.Worker, p.s.Base, p.s.Have.Horizon, ops[do.Op], do.Key)
	}
	meant := do.Value
	if p.w.mutant.action != nil {
		do = p.w.mutant.action(p, do)
	}
	if do.Op == term.Put {
		p.sent, p.sentAt, p.meant = do, now, meant
	}
	return do
}

var ops = [...]string{"nothing", "get", "list", "put", "ask", "sleep"}

func (p *process) note(e term.Event) {
	switch e := e.(type) {
	case term.Found:
		p.known, p.knownAt = e.Record.Read, p.host.boot()
	case term.Wrote:
		p.known, p.knownAt = e.Record.Read, p.host.boot()
	}
	if p.s.View.Known {
		p.view = p.s.View
	}
	if p.s.Pool.ID != "" {
		p.poolID = p.s.Pool.ID
	}
}

// allow lets the generator issue what the machine grants, and closes it with
// the term.
func (p *process) allow(do term.Action) {
	g, ok := p.s.Grant()
	if m := &p.w.mutant; m.grant != nil {
		g, ok = m.grant(p, do, g, ok)
	}
	if ok && p.file != nil {
		g.Horizon = p.file.marked(p, g)
	}
	switch {
	case ok && p.gen == nil:
		p.gen = p.w.newGenerator(p, g)
		p.began, p.begun = true, true
	case ok:
		p.gen.extend(g.Horizon)
	case p.gen != nil && p.s.Over():
		p.gen.close()
	}
}

// ended is what follows a term.
func (p *process) ended() {
	p.inTerm = false
	p.turn++
	phase, err := p.s.Phase, p.s.Err
	p.w.logf("p%d: %s: %v", p.id, phase, err)
	p.w.check.over(p)
	if p.gen != nil {
		p.gen.close()
	}
	switch {
	case p.wish:
		p.exit()
		return
	case phase == term.Forgotten, phase == term.Refused && !p.begun:
		p.exit() // Open fails, or the program sees that nothing will come any more
		p.w.after(time.Second+p.w.around(2*time.Second), p.boot)
		return
	}
	if p.began {
		p.fails = 0
	}
	pause := min(100*time.Millisecond<<min(p.fails, 10), lapse)
	p.fails++
	p.after(p.w.upTo(pause), p.term)
}

// exit ends a process that has nothing more to do.
func (p *process) exit() {
	p.w.logf("p%d exits", p.id)
	p.life++
	p.alive, p.inTerm, p.gen = false, false, nil
}

func (p *process) perform(do term.Action) {
	p.turn++
	p.do = do
	if do.Op == term.Sleep {
		p.naps++
		if do.Until > p.host.boot() {
			p.naps = 0
		}
		if p.naps > 3 {
			p.w.fail("p%d: sleeps in vain, in phase %s", p.id, p.s.Phase)
			return
		}
		p.sleep(p.turn)
		return
	}
	p.naps = 0
	p.w.send(p, do)
	p.tend(p.turn)
}

// patience is how long to wait for an answer: less where the grant is short.
func (p *process) patience() time.Duration {
	grant, ok := p.s.Grant()
	left := p.w.begin(grant.Horizon + 1).Sub(p.now().Wall)
	if !ok || left <= 0 {
		return ask
	}
	return min(ask, max(left/3, look))
}

// tend looks after the generator while the store takes its time.
func (p *process) tend(turn int) {
	p.after(p.w.looks(), func() {
		if turn != p.turn {
			return
		}
		p.follow()
		if p.gen != nil {
			p.gen.setClock(p.now().Wall)
			p.allow(term.Action{Op: term.Sleep})
		}
		p.tend(turn)
	})
}

// await returns what delivers the reply to an action, of which the first counts.
func (p *process) await(term.Action) func(term.Event) {
	life, turn := p.life, p.turn
	return func(e term.Event) {
		if life == p.life && turn == p.turn {
			p.soon(life, func() {
				if turn == p.turn {
					p.step(e)
				}
			})
		}
	}
}

// sleep waits for the action's time, and looks at the clocks on the way.
func (p *process) sleep(turn int) {
	left := p.do.Until - p.host.boot()
	if left <= 0 {
		p.step(term.Woke{})
		return
	}
	if p.nudged {
		left = 0
	}
	wake := p.host.when(p.host.boot() + min(left, p.w.looks()))
	life := p.life
	p.w.at(wake, func() {
		p.soon(life, func() {
			if turn == p.turn {
				p.look(turn)
			}
		})
	})
}

// looks is how often processes look at the clocks; not always as often as the
// driver does, for schedules that last.
func (w *world) looks() time.Duration { return max(look, w.rules.Renew/12) }

func (p *process) look(turn int) {
	now := p.follow()
	if p.gen != nil {
		p.gen.setClock(now.Wall)
		p.allow(term.Action{Op: term.Sleep})
	}
	switch {
	case p.w.store.forgot && p.rules.Embedded && !p.w.calm:
		p.step(term.Forgot{Err: errGone})
	case p.nudged:
		p.nudged = false
		p.step(term.Woke{})
	default:
		p.sleep(turn)
	}
}

// nudge is what a caller does that finds the grant used up.
func (p *process) nudge() {
	if p.s.Degraded() || p.s.Err != nil && p.s.Phase != term.Lost || !p.inTerm || p.nudged {
		return
	}
	p.nudged = true
	if p.do.Op == term.Sleep {
		turn := p.turn
		p.after(0, func() {
			if turn == p.turn && p.inTerm {
				p.look(turn)
			}
		})
	}
}

// quit closes the lease: whatever came of the action in flight comes first.
func (p *process) quit() {
	if !p.alive || p.wish {
		return
	}
	p.wish = true
	p.w.logf("p%d closes", p.id)
	if !p.inTerm {
		p.exit()
		return
	}
	switch {
	case p.do.Op == term.Sleep:
	case p.w.chance(0.3): // the reply is just coming in
		p.parting = true
		return
	default:
		p.turn++
		p.decide(p.now(), term.Unknown{Err: errStopped})
	}
	p.stop()
}

// stop closes the generator for good and says so.
func (p *process) stop() {
	var last firn.Tick
	if p.gen != nil {
		last = p.gen.end()
	}
	if p.file != nil && !p.w.mutant.staleFile {
		p.file.void()
	}
	if m := &p.w.mutant; m.last != nil {
		last = m.last(p, last)
	}
	p.after(ask, func() { // no more time to say goodbye
		if p.inTerm {
			p.exit()
		}
	})
	p.step(term.Stop{Last: last})
}

func (p *process) close() { p.soon(p.life, p.quit) }
