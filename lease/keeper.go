package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

const (
	look    = 250 * time.Millisecond // between two looks at the clocks, and at an embedded store
	warning = 10 * 365 * 24 * time.Hour
)

// A keeper is the world of a lane's holder, which runs in one goroutine: it has the
// clocks, the store, the grant file and the generator that package holder asks for, and
// tells callers and the log what becomes of the lane.
type keeper struct {
	lease   *Lease
	lane    *lane
	store   store.Store
	options Options

	noticesLoss bool // the store, when it was removed or replaced
	log         *slog.Logger
	file        *grantFile    // nil: none
	opened      chan<- opened // receives once, when the first worker was taken or refused

	requests context.Context   // what requests have in common
	stop     <-chan struct{}   // closed when the lease is; nil once that was said
	answer   <-chan term.Event // to the request under way; nil: there is none
	cancel   context.CancelFunc

	process *holder.Process

	gen    *firn.Generator // of the current term, or of the last; callers get it from Show on
	marked bool            // the mark was raised since the last Show
	waits  int64           // of the generators before this one
	told   told
}

// opened is how the first term began.
type opened struct {
	delay time.Duration // until the first id can be issued
	err   error
}

// run holds a worker until the lease is closed. begun is what the clocks said when Open
// found that the layout has begun and not ended.
func (k *keeper) run(rules *term.Rules, seen term.View, begun term.Now) {
	p := holder.New(rules, k.options.Name, seed(), begun, seen)
	p.Foreign, k.noticesLoss = k.options.foreign, seen.Durability.NoticesLoss
	k.process = &p
	if k.file != nil {
		defer k.file.close()
		p.Filed = true
		k.adopt(&p)
	}
	if left := k.options.Layout.End().Sub(begun.Wall); left < warning {
		k.log.Warn("the layout ends soon", "end", k.options.Layout.End(), "layout", k.options.Layout)
	}
	k.lane.ended = holder.Run(&p, k)
	k.open(opened{err: k.why(&p)})
}

// open tells Open how the first term began, once.
func (k *keeper) open(o opened) {
	if k.opened != nil {
		k.opened <- o
		k.opened = nil
	}
}

// adopt lets the first term go on with the grant that a process before this one left,
// where it is of use.
func (k *keeper) adopt(p *holder.Process) {
	left, _, err := k.file.read(&k.options)
	if err == nil {
		err = p.Adopt(left, k.Clocks().Boot)
	}
	if err != nil {
		k.log.Debug("does not use the grant of the grant file", "path", k.file.path, "why", err)
		return
	}
	k.log.Info("continues the grant of the previous process", "worker", left.Grant.Worker, "term", left.Grant.Record.Term)
}

// Clocks reads the system's clocks.
func (k *keeper) Clocks() term.Now { return k.options.clocks() }

// Seed reads the system's random generator.
func (k *keeper) Seed() [32]byte { return seed() }

// Send asks the store in a goroutine of its own.
func (k *keeper) Send(do term.Action, patience time.Duration) {
	ctx, cancel := context.WithTimeout(k.requests, patience)
	answer := make(chan term.Event, 1)
	k.answer, k.cancel = answer, cancel
	go func() {
		defer cancel()
		answer <- request(ctx, k.store, do)
	}()
}

// Cancel breaks off the request under way.
func (k *keeper) Cancel() {
	if k.cancel != nil {
		k.cancel()
	}
}

// request asks the store and returns what came of it.
func request(ctx context.Context, st store.Store, do term.Action) term.Event {
	var e term.Event
	var err error
	switch do.Op {
	case term.Get:
		var rec store.Record
		rec, err = st.Get(ctx, do.Key)
		e = term.Found{Record: rec}
	case term.List:
		var list []store.Record
		list, err = st.List(ctx, do.Key)
		e = term.Listed{Records: list}
	case term.Ask:
		var p store.Durability
		p, err = st.Durability(ctx)
		e = term.Promised{Durability: p}
	case term.Put:
		var rec store.Record
		rec, err = st.Put(ctx, do.Key, do.Value, do.Cond)
		e = term.Wrote{Record: rec}
	}
	if err != nil {
		return holder.Failed(err)
	}
	return e
}

// Wait returns when something happened, or when the boot clock says until.
func (k *keeper) Wait(until time.Duration) holder.Signal {
	t := time.NewTimer(until - k.Clocks().Boot)
	defer t.Stop()
	select {
	case <-k.stop:
		k.stop = nil
		return holder.Signal{Stop: true}
	case e := <-k.answer:
		return holder.Signal{Answer: e}
	case <-k.lane.nudge:
		return holder.Signal{Nudged: true}
	case <-t.C:
	}
	select {
	case e := <-k.answer: // it came while this process was paused
		return holder.Signal{Answer: e}
	default:
		return holder.Signal{}
	}
}

// Forgotten says whether the store has forgotten, as far as another lane has found out. It
// asks an embedded store how durable it is, which is when that finds out that it is gone.
func (k *keeper) Forgotten() error {
	if forgot := k.lease.forgot.Load(); forgot != nil {
		return *forgot
	}
	if !k.noticesLoss {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.requests, look) // one that is locked is not waited for
	defer cancel()
	_, err := k.store.Durability(ctx)
	var forgot *store.ForgotError
	if errors.As(err, &forgot) {
		return err
	}
	return nil
}

// NewGenerator makes what issues the ids of a term.
func (k *keeper) NewGenerator(grant firn.Grant, now time.Time) (holder.Generator, error) {
	gen, err := firn.NewGenerator(k.options.Layout, grant, &firn.GeneratorOptions{
		Shard: k.options.Shard, Borrow: k.options.MaxAhead, Start: now,
	})
	if err != nil {
		return nil, err
	}
	if k.gen != nil {
		k.waits += k.gen.Waits()
	}
	k.gen = gen
	i := &issuer{k: k, gen: gen, grant: grant}
	i.delegate(now)
	return i, nil
}

// Mark leaves a handover in the grant file.
func (k *keeper) Mark(left holder.Handover) error {
	k.marked = true
	return k.file.write(&k.options, left)
}

// Show makes the state and then the generator known, to callers and to Open, and logs what is
// news. A caller that has a new generator can read in the state when its ids start.
func (k *keeper) Show(p *holder.Process) {
	was, now := k.lane.state.Load(), k.state(p)
	if was != nil && p.Term.Pool.ID == "" { // a new term has not read yet what the last one knew
		now.Durable, now.Why = was.Durable, was.Why
	}
	k.lane.state.Store(&now)
	if k.gen != nil {
		k.lane.gen.Store(k.gen)
	}
	if err := k.why(p); p.Term.Phase == term.Forgotten {
		k.lease.forgot.CompareAndSwap(nil, &err)
	}
	if was == nil || was.differs(now) || k.marked {
		k.marked = false
		k.lease.change()
	}
	k.tell(was, now, p)
	if p.Begun {
		k.open(opened{delay: p.StartsAt().Sub(p.Now(k.Clocks().Boot).Wall), err: p.FileErr})
	}
}

// why is the error of a term: the last failure, or why it is over.
func (k *keeper) why(p *holder.Process) error {
	if p.OtherPool {
		return k.file.ofAnotherPool(p.Term.Err)
	}
	return p.Term.Err
}
