package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

const (
	ask     = 5 * time.Second        // for one request to the store, and for the release at Close
	look    = 250 * time.Millisecond // between two looks at the clocks, and at an embedded store
	lapse   = 10 * time.Second       // between two tries for a worker when none could be had, at most
	warning = 10 * 365 * 24 * time.Hour
)

// A keeper holds the worker of a lane, term after term, in one goroutine: it
// performs what the machine of package term asks, and hands the generator what
// that grants.
type keeper struct {
	lease   *Lease
	lane    *lane
	store   store.Store
	seen    term.View
	options Options
	rules   *term.Rules
	log     *slog.Logger
	opened  chan<- opened // receives once, when the first worker was taken or refused

	clock  term.Clock
	poolID string // once known
	known  reading
	taken  time.Time // when the first grant of this term was acknowledged
	waits  int64     // of the generators before this one
	told   string    // of the last change that was logged
	spent  time.Time // when ids ended because the store does not answer; zero: they have not

	file    *grantFile // nil: none
	resume  *term.Saved
	mark    firn.Tick // that resume starts above
	hearsay bool      // the pool's id is known from the file alone
	fileErr error     // why the mark cannot be raised
}

// opened is how the first term began.
type opened struct {
	delay time.Duration // until the first id can be issued
	err   error
}

// A reading is what the store's clock said at a boot time.
type reading struct {
	store time.Time
	boot  time.Duration
}

// run holds a worker until ctx is done. begun is what the clocks said when Open found
// that the layout has begun and not ended.
func (k *keeper) run(ctx context.Context, begun term.Now) {
	k.clock = term.NewClock(begun.Wall, begun.Boot)
	if k.file != nil {
		defer k.file.close()
		k.adopt()
	}
	if left := k.options.Layout.End().Sub(begun.Wall); left < warning {
		k.log.Warn("the layout ends soon", "end", k.options.Layout.End(), "layout", k.options.Layout)
	}
	for failures := 0; ; failures++ {
		end, began := k.term(ctx)
		if began {
			failures = 0
		}
		if end.Phase == term.Forgotten {
			k.lease.forgot.Store(&term.Forgot{Err: end.Err})
		}
		switch {
		case ctx.Err() != nil:
			return
		case end.Phase == term.Forgotten, end.Phase == term.Refused && !k.begun(), began && k.options.foreign:
			k.open(opened{err: end.Err})
			<-ctx.Done()
			return
		}
		pause := min(100*time.Millisecond<<min(failures, 10), lapse)
		sleep(ctx, rand.N(pause), nil)
	}
}

// term runs one term to its end. A term makes one generator, and the generator
// dies with it.
//
// While this process's own clock is outside the layout's life, a term ends with that
// error. A worker that was taken by then is given back.
func (k *keeper) term(ctx context.Context) (s term.State, began bool) {
	k.lane.ended = nil
	now := k.follow() // while no worker can be had, too: it may be for a clock that is ahead
	if err := k.options.Layout.Check(now.Wall); err != nil {
		s.Phase, s.Err = term.Refused, err
		k.publish(s)
		return s, false
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s = k.start()
	var gen *firn.Generator
	var warned bool
	var outside error // the layout's life
	var e term.Event = term.Begin{View: k.seen}
	for {
		var do term.Action
		s, do = s.Step(k.rules, k.now(), e)
		s = k.denied(s, e)
		s.Err = k.disowned(s, e)
		k.note(s, e)
		var err error
		if gen, err = k.allow(s, gen); err != nil {
			outside = err
			stop()
		}
		if outside != nil && s.Phase != term.Forgotten {
			s.Err = outside
		}
		if gen != nil && s.Over() {
			gen.Close()
		}
		k.publish(s)
		if s.Phase == term.Holding && !warned && !k.begun() {
			warned = true
			k.warn(s)
		}
		if gen != nil && !began {
			began = true
			k.open(opened{delay: k.delay(s), err: k.fileErr})
		}
		if s.Over() {
			k.end(s)
			return s, began
		}
		e = k.perform(ctx, s, gen, do)
		if ctx.Err() == nil {
			continue
		}
		if s.Closed { // no more time to say goodbye: the horizon stands
			s.Err = context.Cause(ctx)
			k.end(s)
			return s, began
		}
		if do.Op != term.Sleep { // what came of the action in flight comes first
			s, _ = s.Step(k.rules, k.now(), e)
		}
		last, err := k.closeFor(gen)
		if err != nil { // keep the worker: somebody may yet go on with the grant
			s.Closed, s.Err = true, err
			k.lane.ended = err // said where no worker is held, too
			k.end(s)
			return s, began
		}
		e = term.Stop{Last: last}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), ask, errors.New("the store did not answer in time"))
		defer cancel()
	}
}

// denied ends a term before the first worker was taken where an event says that this user
// lacks a right: nobody waits at a start for somebody to grant one. A process that has held a
// worker goes on asking, since rights may come back.
func (k *keeper) denied(s term.State, e term.Event) term.State {
	if unknown, ok := e.(term.Unknown); ok && !k.begun() && !s.Closed && errors.Is(unknown.Err, store.ErrDenied) {
		s.Phase, s.Err = term.Refused, unknown.Err
	}
	return s
}

// start returns the state that a term begins with.
func (k *keeper) start() term.State {
	if r := k.resume; r != nil {
		k.resume = nil
		k.log.Info("goes on with the grant of the process before", "worker", r.Worker, "term", r.Record.Term)
		return term.Resume(seed(), k.options.Name, *r, k.mark)
	}
	return term.Start(seed(), k.options.Name, k.poolID)
}

// closeFor closes the generator for good, and makes its grant file void, before
// a release is sent: a release that arrives late must find nobody who has gone
// on with the grant.
func (k *keeper) closeFor(gen *firn.Generator) (last firn.Tick, err error) {
	if gen != nil {
		last = gen.Close()
	}
	if k.options.foreign { // what another program has issued is known by the clock only
		last = k.options.Layout.Tick(k.latest().Add(k.rules.Skew))
	}
	if k.file != nil {
		err = k.file.write(slot{Void: true})
	}
	return last, err
}

// allow lets the generator issue what the machine grants, and with a grant file
// no more than has been marked there. It makes the generator of a term's first grant;
// the error says that this process's own clock has left the layout's life.
func (k *keeper) allow(s term.State, gen *firn.Generator) (*firn.Generator, error) {
	grant, ok := s.Grant()
	if !ok {
		return gen, nil
	}
	if k.file != nil {
		grant.Horizon = k.marked(s, grant)
	}
	if gen != nil {
		gen.Extend(grant.Horizon)
		return gen, nil
	}
	now := k.now().Wall
	gen, err := firn.NewGenerator(k.options.Layout, grant, &firn.GeneratorOptions{
		Shard: k.options.Shard, Borrow: k.options.MaxAhead, Start: now,
	})
	if err != nil {
		return nil, err
	}
	if last := k.lane.gen.Load(); last != nil {
		k.waits += last.Waits()
	}
	k.taken = now
	k.lane.gen.Store(gen)
	return gen, nil
}

// perform does what the machine asks and returns what came of it. A store that
// takes its time does not keep it from looking after the generator.
func (k *keeper) perform(ctx context.Context, s term.State, gen *firn.Generator, do term.Action) term.Event {
	if do.Op == term.Sleep {
		return k.sleep(ctx, s, gen, do.Until)
	}
	ctx, cancel := context.WithTimeout(ctx, k.patience(s))
	defer cancel()
	answer := make(chan term.Event, 1)
	go func() { answer <- k.request(ctx, do) }()
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case e := <-answer:
			return e
		case <-t.C:
			k.tend(s, gen)
		}
	}
}

// patience is how long to wait for an answer: a store that does not answer has to
// be known for that before the grant is used up.
func (k *keeper) patience(s term.State) time.Duration {
	grant, ok := s.Grant()
	left := k.options.Layout.Time(grant.Horizon + 1).Sub(k.now().Wall)
	if !ok || left <= 0 {
		return ask
	}
	return min(ask, max(left/3, look))
}

// tend sets the generator's clock and raises its mark.
func (k *keeper) tend(s term.State, gen *firn.Generator) {
	now := k.follow()
	if gen != nil {
		gen.SetClock(now.Wall)
		k.allow(s, gen) // cannot fail: it only makes a generator where there is none
		k.publish(s)
	}
}

// request asks the store and returns what came of it.
func (k *keeper) request(ctx context.Context, do term.Action) term.Event {
	var e term.Event
	var err error
	switch do.Op {
	case term.Get:
		var rec store.Record
		rec, err = k.store.Get(ctx, do.Key)
		e = term.Found{Record: rec}
	case term.List:
		var list []store.Record
		list, err = k.store.List(ctx, do.Key)
		e = term.Listed{Records: list}
	case term.Ask:
		var p store.Durability
		p, err = k.store.Durability(ctx)
		e = term.Promised{Durability: p}
	case term.Put:
		var rec store.Record
		rec, err = k.store.Put(ctx, do.Key, do.Value, do.Cond)
		e = term.Wrote{Record: rec}
		if errors.Is(err, store.ErrConflict) {
			return term.Conflict{}
		}
	}
	if err != nil {
		return failed(err)
	}
	return e
}

// failed is the event of a request that the store did not answer.
func failed(err error) term.Event {
	var forgot *store.ForgotError
	if errors.As(err, &forgot) {
		return term.Forgot{Err: err}
	}
	return term.Unknown{Err: err}
}

// sleep waits until a boot time, or a nudge. On the way it tends the generator,
// and looks whether an embedded store is still the one that was opened.
func (k *keeper) sleep(ctx context.Context, s term.State, gen *firn.Generator, until time.Duration) term.Event {
	for {
		left := until - k.options.clocks().Boot
		if left <= 0 {
			return term.Woke{}
		}
		nudged := sleep(ctx, min(left, look), k.lane.nudge)
		if ctx.Err() != nil {
			return term.Woke{}
		}
		k.tend(s, gen)
		if e := k.lookAtStore(ctx); e != nil {
			return e
		}
		if nudged {
			return term.Woke{}
		}
	}
}

// lookAtStore says whether the store has forgotten, as far as another lane has found
// out. It asks an embedded store for its promise, which is when that finds out that it
// is gone.
func (k *keeper) lookAtStore(ctx context.Context) term.Event {
	if forgot := k.lease.forgot.Load(); forgot != nil {
		return *forgot
	}
	if !k.seen.Durability.NoticesLoss {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, look) // one that is locked is not waited for
	defer cancel()
	if _, err := k.store.Durability(ctx); err != nil {
		if e, ok := failed(err).(term.Forgot); ok {
			return e
		}
	}
	return nil
}

// sleep returns after d, or when ctx is done, or reports a nudge.
func sleep(ctx context.Context, d time.Duration, nudge <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-nudge:
		return true
	}
	return false
}

// now reads the process's own clock.
func (k *keeper) now() term.Now {
	boot := k.options.clocks().Boot
	return term.Now{Wall: k.clock.At(boot), Boot: boot}
}

// latest is the later one of the system's clock and our own. Where the system's
// was set back, our own still says until when the other program has issued: it is
// led back slowly, and never to before a time that it has shown.
func (k *keeper) latest() time.Time {
	sys := k.options.clocks()
	if own := k.clock.At(sys.Boot); own.After(sys.Wall) {
		return own
	}
	return sys.Wall
}

// follow leads the process's own clock to the system's, and reads it.
func (k *keeper) follow() term.Now {
	sys := k.options.clocks()
	var known time.Time
	if !k.rules.LocalClock && !k.known.store.IsZero() {
		known = k.known.store.Add(sys.Boot - k.known.boot)
	}
	k.clock = k.clock.Follow(sys.Wall, sys.Boot, known, k.rules.Skew)
	return term.Now{Wall: k.clock.At(sys.Boot), Boot: sys.Boot}
}

// note remembers what the store promises, its clock, and the pool's id.
func (k *keeper) note(s term.State, e term.Event) {
	if s.View.Known {
		k.seen = s.View
	}
	switch e := e.(type) {
	case term.Found:
		k.known = reading{e.Record.Read, k.options.clocks().Boot}
	case term.Wrote:
		k.known = reading{e.Record.Read, k.options.clocks().Boot}
	}
	if s.Pool.ID != "" {
		k.poolID, k.hearsay = s.Pool.ID, false
	}
}

// delay is how long it takes until the first id of a grant can be issued.
func (k *keeper) delay(s term.State) time.Duration {
	first := k.options.Layout.Time(s.Base + 1).Add(-k.rules.Borrow)
	return first.Sub(k.now().Wall)
}

// warn tells of a long wait for the first id, when it begins: until it is nearly
// over nothing is granted.
func (k *keeper) warn(s term.State) {
	if delay := k.delay(s); delay > time.Second {
		why := "the worker's past lies ahead of this clock"
		if s.Lossy {
			why = "the store can forget: " + s.Why()
		}
		k.log.Warn("waiting before the first id", "for", delay.Round(time.Second), "why", why)
	}
}

// begun reports whether Open has returned.
func (k *keeper) begun() bool { return k.opened == nil }

func (k *keeper) open(o opened) {
	if k.opened != nil {
		k.opened <- o
		k.opened = nil
	}
}

// end notes how a term ended, for Close.
func (k *keeper) end(s term.State) {
	if s.Closed && s.Have.Owner != "" && s.Phase != term.Released && s.Phase != term.Lost {
		k.lane.ended = fmt.Errorf("lease: worker %d was not given back, and falls free in %s: %w",
			s.Worker, time.Duration(s.Have.TTL)*time.Millisecond, s.Err)
	}
}

// measure adds to a state what the clocks and the generator tell.
func (k *keeper) measure(now *State, s term.State) {
	own := k.now()
	if !k.known.store.IsZero() {
		now.Ahead = own.Wall.Sub(k.known.store.Add(own.Boot - k.known.boot))
	}
	gen := k.lane.gen.Load()
	if gen == nil {
		return
	}
	now.Waits = k.waits + gen.Waits()
	if s.Phase == term.Holding {
		now.Since, now.Renewed = k.taken, own.Wall.Add(s.Since-own.Boot)
		now.Borrowed = gen.Borrowed()
	}
}

// publish makes the state known, and logs what is news.
func (k *keeper) publish(s term.State) {
	sys := k.options.clocks()
	now := State{
		Pool: k.rules.Pool, PoolID: s.Pool.ID, Layout: k.options.Layout, Durability: k.seen.Durability,
		Durable: true, Why: s.Why(), Phase: s.Phase, Worker: s.Worker, Term: s.Have.Term, Outage: s.Reach,
		Budget:   k.rules.Budget(s.Pool, s.Lossy),
		Degraded: s.Degraded(), Err: s.Err, Offset: sys.Wall.Sub(k.clock.At(sys.Boot)),
	}
	if s.Lossy || !s.View.Known && !now.Durability.Durable {
		now.Durable = false
	}
	if since, away := s.Mute(); away {
		now.AwaySince = k.clock.At(since)
	}
	if now.Err == nil {
		now.Err = s.Unseen()
	}
	if k.fileErr != nil {
		now.Err = errors.Join(now.Err, k.fileErr)
	}
	if s.Have.Owner != "" {
		now.Horizon = k.options.Layout.Time(s.Have.Horizon + 1).Add(-1)
	}
	k.measure(&now, s)
	was := k.lane.state.Load()
	if was != nil && s.Pool.ID == "" { // a new term has not read yet what the last one knew
		now.Durable, now.Why = was.Durable, was.Why
	}
	k.lane.state.Store(&now)
	if was == nil || was.differs(now) {
		k.lease.change()
	}
	k.tell(was, now, s)
}
