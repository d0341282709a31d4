package sequence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

const (
	patience = 5 * time.Second        // with one request to the store, and with all that Close asks of it
	grace    = time.Second            // of that, for each write that is under way when its time is over
	breath   = 250 * time.Millisecond // between two requests of Open that fail
)

// A keeper keeps one lane in numbers, in one goroutine: it performs what the
// machine of package block asks.
type keeper struct {
	*lane
	log     *slog.Logger
	updater store.Updater // nil: the store is none
}

func (k *keeper) run(ctx context.Context) {
	if k.driver.State.Have.First == 0 {
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
	k.driver.Away = time.Now()
	s.mu.Unlock()
	for ctx.Err() == nil && !k.over() {
		err := k.join(ctx, true, s.id())
		var outage *OutageError
		if errors.As(err, &outage) {
			sleep(ctx, time.Second)
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
	have := &k.driver.State.Have
	var want block.Take
	for _, w := range s.queue {
		if w.denied&k.place != 0 {
			continue
		}
		if want.Need == 0 {
			want.Least = k.least(w)
		} else if have.Strict && want.Need+int64(w.n) > have.Left() {
			continue // there is no room for both, and of a strict series nothing is kept
		}
		w.asked |= k.place
		want.Need += int64(w.n)
	}
	d, take, due := k.driver.Due(s.clocks(), want, k.left(), k.issued())
	k.driver = d
	if due {
		k.now.limit.Store(k.now.count) // nobody has to call while it is asked for
	}
	return take, due
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
	var look <-chan time.Time
	every := k.driver.LookEvery()
	if every > 0 {
		t := time.NewTimer(every)
		defer t.Stop()
		look = t.C
	}
	select {
	case <-ctx.Done():
	case <-k.nudge:
	case <-look:
		ctx, cancel := context.WithTimeout(ctx, every)
		defer cancel()
		do := k.perform(ctx, block.Look{})
		k.take(do)
	}
}

// perform does what the machine asks until it has an answer to e, or ctx is done.
func (k *keeper) perform(ctx context.Context, e block.Event) block.Action {
	d, do := k.driver.Step(k.series.clocks(), e)
	for do.Op != record.None && ctx.Err() == nil {
		if k.updater != nil && d.State.Crowded() {
			d, do = k.update(ctx, d, do)
		} else {
			d, do = d.Step(k.series.clocks(), request(ctx, k.store, do))
		}
		k.publish(d)
	}
	k.publish(d)
	return do
}

// errNoPut is why nothing is written: the machine does not ask for it.
var errNoPut = errors.New("sequence: nothing to write")

// update performs a Get, and the Put that the machine asks for when it has seen
// the record, with nobody in between.
func (k *keeper) update(ctx context.Context, d block.Driver, do block.Action) (block.Driver, block.Action) {
	ctx, cancel := within(ctx, record.Put)
	defer cancel()
	rec, err := k.updater.Update(ctx, do.Key, func(r store.Record) ([]byte, error) {
		d, do = d.Step(k.series.clocks(), block.Answer{Record: r})
		if do.Op != record.Put {
			return nil, errNoPut
		}
		return do.Value, nil
	})
	if errors.Is(err, errNoPut) {
		return d, do
	}
	return d.Step(k.series.clocks(), block.Answer{Record: rec, Err: err})
}

// request does what the machine asks and returns what came of it.
func request(ctx context.Context, st store.Store, do block.Action) block.Answer {
	if do.Op == record.Sleep {
		sleep(ctx, do.Pause)
		return block.Answer{}
	}
	ctx, cancel := within(ctx, do.Op)
	defer cancel()
	return block.Answer(do.Send(ctx, st))
}

// sleep waits, and less where ctx is done sooner.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// within returns the context of a request. That of a write outlives ctx for a
// while: one that is cut off may be carried out nevertheless, and then nothing can
// be handed back.
func within(ctx context.Context, op record.Op) (context.Context, context.CancelFunc) {
	if op != record.Put {
		return context.WithTimeout(ctx, patience)
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(write, func() { t.Stop() })
	})
	return write, func() { stop(); cancel() }
}

// publish makes the driver's state known, and logs what is news.
func (k *keeper) publish(d block.Driver) {
	k.series.mu.Lock()
	defer k.series.mu.Unlock()
	was := k.driver.Away
	k.driver = d
	switch {
	case k.series.closed || was.IsZero() == d.Away.IsZero():
	case was.IsZero():
		st := k.stateNow()
		k.log.Warn("the store does not answer", "left", st.Left, "lasts", st.Lasts.Round(time.Millisecond), "err", st.Err)
	default:
		k.log.Info("the store answers again", "after", time.Since(was).Round(time.Millisecond))
	}
	if d.State.Fails > 0 && errors.Is(d.State.Err, store.ErrDenied) {
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
	case k.driver.State.Over:
		k.fail(explain(s.name, do.Err))
	case do.Grant.Count > 0:
		k.deliver(do.Grant, k.driver.State.Have.Strict)
	case do.Err != nil:
		k.deny(explain(s.name, do.Err))
	}
}

// close hands back what is left, once nothing of it can be issued any more.
func (k *keeper) close() {
	k.series.mu.Lock()
	used, over := k.highest(), k.failed != nil || k.driver.State.Over
	k.series.mu.Unlock()
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience-2*grace)
	defer cancel()
	k.perform(ctx, block.Stop{Used: int64(used)})
	if !k.driver.State.Over {
		k.ended = fmt.Errorf("sequence: series %q: the rest of the last block was not handed back: %w", k.series.name, context.Cause(ctx))
	} else if err := k.driver.State.Err; err != nil {
		k.ended = fmt.Errorf("sequence: series %q: the rest of the last block was not handed back: %w", k.series.name, err)
	}
}
