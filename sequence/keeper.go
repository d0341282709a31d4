package sequence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

const (
	ask        = 5 * time.Second        // for one request to the store, and for all that Close asks of it
	grace      = time.Second            // of that, for each write that is under way when its time is over
	look       = 250 * time.Millisecond // between two looks at an embedded store
	lookAtSelf = 10 * time.Second       // between two looks at which instance of a lossy store answers
)

// A keeper keeps one lane in numbers, in one goroutine: it performs what the
// machine of package block asks.
type keeper struct {
	*lane
	rules   *block.Rules
	log     *slog.Logger
	updater store.Updater // nil: the store is none
}

func (k *keeper) run(ctx context.Context) {
	if k.state.Have.First == 0 {
		k.joinLate(ctx)
	}
	for ctx.Err() == nil && !k.over() {
		take, due := k.due()
		if !due {
			k.rest(ctx)
			continue
		}
		do := k.perform(ctx, take)
		k.take(do)
	}
	<-ctx.Done()
	k.close()
}

// joinLate joins a store that was away when the series was opened.
func (k *keeper) joinLate(ctx context.Context) {
	s := k.series
	s.mu.Lock()
	k.away = time.Now()
	s.mu.Unlock()
	for ctx.Err() == nil && !k.over() {
		err := k.join(ctx, true, s.id())
		var outage *OutageError
		if errors.As(err, &outage) {
			k.request(ctx, block.Action{Op: block.Sleep, For: time.Second})
			continue
		}
		s.mu.Lock()
		if err == nil {
			err = s.fits(k.lane)
		}
		if err != nil {
			k.fail(err)
		}
		s.mu.Unlock()
		return
	}
}

// over reports whether the lane has ended for good.
func (k *keeper) over() bool {
	k.series.mu.Lock()
	defer k.series.mu.Unlock()
	return k.failed != nil
}

// due says what to ask the store for, if anything.
func (k *keeper) due() (block.Take, bool) {
	s := k.series
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || k.failed != nil {
		return block.Take{}, false
	}
	k.arm()
	var take block.Take
	for _, w := range s.queue {
		if w.denied&k.place != 0 {
			continue
		}
		if take.Need == 0 {
			take.Least = k.least(w)
		} else if k.state.Have.Strict && take.Need+int64(w.n) > k.state.Have.Left() {
			continue // there is no room for both, and of a strict series nothing is kept
		}
		w.asked |= k.place
		take.Need += int64(w.n)
	}
	left := k.left()
	if take.Need == 0 && (left > k.low || k.refused != nil || k.state.Have.Strict) {
		return take, false
	}
	if !k.state.Have.Strict && left <= k.low {
		k.pace = k.pace.Next(s.clocks().Boot, k.issued(), k.limits)
		take.Ahead = k.pace.Ahead(left, k.limits)
		if take.Need <= take.Ahead/2 {
			take.Ahead -= take.Need // a segment has as many numbers as its step
		}
	}
	k.now.limit.Store(k.now.count) // nobody has to call while it is asked for
	return take, take.Need+take.Ahead > 0
}

// least is how few numbers w can use: fewer are not to be granted.
func (k *keeper) least(w *waiter) int64 {
	switch {
	case w.whole:
		return int64(w.n)
	case len(k.series.lanes) > 1:
		return 0 // another store may have the others
	}
	return int64(w.n) - k.left()
}

// rest waits for a call, or until it is time to look at the store.
func (k *keeper) rest(ctx context.Context) {
	every := time.Duration(0)
	switch {
	case k.state.Durability.NoticesLoss:
		every = look
	case k.state.Have.Instance != "":
		every = lookAtSelf
	default:
		select {
		case <-ctx.Done():
		case <-k.nudge:
		}
		return
	}
	t := time.NewTimer(every)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-k.nudge:
	case <-t.C:
		// One that does not answer is not waited for, and says nothing.
		ctx, cancel := context.WithTimeout(ctx, every)
		defer cancel()
		if e := k.request(ctx, block.Action{Op: block.Ask}); heard(e) {
			s, do := k.state.Step(k.rules, k.series.clocks(), e)
			k.publish(s)
			k.take(do)
		}
	}
}

func heard(e block.Event) bool {
	_, unknown := e.(block.Unknown)
	return !unknown
}

// perform does what the machine asks until it has an answer to e, or ctx is done.
func (k *keeper) perform(ctx context.Context, e block.Event) block.Action {
	s, do := k.state.Step(k.rules, k.series.clocks(), e)
	for do.Op != block.None && ctx.Err() == nil {
		if k.updater != nil && s.Crowded() {
			s, do = k.update(ctx, s, do)
		} else {
			s, do = s.Step(k.rules, k.series.clocks(), k.request(ctx, do))
		}
		k.publish(s)
	}
	k.publish(s)
	return do
}

// errNoPut is why nothing is written: the machine does not ask for it.
var errNoPut = errors.New("sequence: nothing to write")

// update performs a Get, and the Put that the machine asks for when it has seen
// the record, with nobody in between.
func (k *keeper) update(ctx context.Context, s block.State, do block.Action) (block.State, block.Action) {
	ctx, cancel := within(ctx, block.Put)
	defer cancel()
	rec, err := k.updater.Update(ctx, do.Key, func(r store.Record) ([]byte, error) {
		s, do = s.Step(k.rules, k.series.clocks(), block.Found{Record: r})
		if do.Op != block.Put {
			return nil, errNoPut
		}
		return do.Value, nil
	})
	if errors.Is(err, errNoPut) {
		return s, do
	}
	return s.Step(k.rules, k.series.clocks(), outcome(block.Wrote{Record: rec}, rec, err))
}

// outcome is the event of a request that was answered so.
func outcome(e block.Event, rec store.Record, err error) block.Event {
	var forgot *store.ForgotError
	switch {
	case err == nil:
		return e
	case errors.Is(err, store.ErrConflict):
		return block.Conflict{}
	case errors.As(err, &forgot):
		return block.Forgot{Err: err}
	}
	return block.Unknown{Tried: rec.Version, Err: err}
}

// request asks the store and returns what came of it.
func (k *keeper) request(ctx context.Context, do block.Action) block.Event {
	if do.Op == block.Sleep {
		t := time.NewTimer(do.For)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		return block.Woke{}
	}
	ctx, cancel := within(ctx, do.Op)
	defer cancel()
	var e block.Event
	var rec store.Record
	var p store.Durability
	var err error
	switch do.Op {
	case block.Get:
		rec, err = k.store.Get(ctx, do.Key)
		e = block.Found{Record: rec}
	case block.Put:
		rec, err = k.store.Put(ctx, do.Key, do.Value, do.Cond)
		e = block.Wrote{Record: rec}
	case block.Ask:
		p, err = k.store.Durability(ctx)
		e = block.Promised{Durability: p}
	}
	return outcome(e, rec, err)
}

// within returns the context of a request. That of a write outlives ctx for a
// while: one that is cut off may be carried out nevertheless, and then nothing can
// be handed back.
func within(ctx context.Context, op block.Op) (context.Context, context.CancelFunc) {
	if op != block.Put {
		return context.WithTimeout(ctx, ask)
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), ask)
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(write, func() { t.Stop() })
	})
	return write, func() { stop(); cancel() }
}

// publish makes the machine's state known, and logs what is news.
func (k *keeper) publish(s block.State) {
	k.series.mu.Lock()
	defer k.series.mu.Unlock()
	k.state = s
	k.limits.Step = s.Have.Step
	switch {
	case s.Fails > 0 && k.away.IsZero() && !k.series.closed:
		k.away = time.Now()
		st := k.stateNow()
		k.log.Warn("the store does not answer", "left", st.Left, "lasts", st.Lasts.Round(time.Millisecond), "err", s.Err)
	case s.Fails == 0 && !k.away.IsZero():
		k.log.Info("the store answers again", "after", time.Since(k.away).Round(time.Millisecond))
		k.away = time.Time{}
	}
	if s.Fails > 0 && errors.Is(s.Err, store.ErrDenied) {
		k.series.refuse()
	}
}

// take does with the answer to a Take what is to be done.
func (k *keeper) take(do block.Action) {
	s := k.series
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed, k.failed != nil:
	case k.state.Over:
		k.fail(do.Err)
	case do.Grant.Count > 0:
		k.refused = nil
		k.pace = k.pace.Answered(s.clocks().Boot)
		k.low = 0
		if !k.state.Have.Strict {
			k.low = k.pace.Low(k.limits)
		}
		k.deliver(do.Grant, k.state.Have.Strict)
	case do.Err != nil:
		k.refused = do.Err
		k.deny(do.Err)
	}
}

// close hands back what is left, once nothing of it can be issued any more.
func (k *keeper) close() {
	k.series.mu.Lock()
	used, over := k.highest(), k.failed != nil || k.state.Over
	k.series.mu.Unlock()
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ask-2*grace)
	defer cancel()
	k.perform(ctx, block.Stop{Used: int64(used)})
	if !k.state.Over {
		k.ended = fmt.Errorf("sequence: series %q: the rest of the last segment was not handed back: %w", k.series.name, context.Cause(ctx))
	} else if err := k.state.Err; err != nil {
		k.ended = fmt.Errorf("sequence: series %q: the rest of the last segment was not handed back: %w", k.series.name, err)
	}
}

func seed() (b [32]byte) {
	rand.Read(b[:])
	return b
}
