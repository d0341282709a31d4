package sequence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/supply"
	"github.com/firn-id/firn/store"
)

const (
	patience = 5 * time.Second        // with one request to the store, and with all that Close asks of it
	breath   = 250 * time.Millisecond // between two requests of Open that fail
)

// A keeper is the world of a lane, which runs in one goroutine: it has the clocks and the store
// that package supply asks for, and logs what becomes of the lane.
type keeper struct {
	*supply.Lane
	series  *Series
	store   store.Store
	updater store.Updater // nil: the store is none
	log     *slog.Logger
	life    context.Context // done once the series is closed
	nudge   chan struct{}
	ended   error // what Close says of it; read once the keeper is done
}

// run keeps the lane in numbers until the series is closed.
func (k *keeper) run() {
	if k.Status().Driver.State.Have.First == 0 {
		k.joinLate()
	}
	err := k.Run()
	if errors.Is(err, supply.ErrNoTime) {
		err = context.DeadlineExceeded
	}
	if err != nil {
		k.ended = fmt.Errorf("sequence: series %q: the rest of the last block was not handed back: %w", k.series.name, err)
	}
}

// joinLate joins a store that was away when the series was opened.
func (k *keeper) joinLate() {
	k.Away()
	for k.life.Err() == nil && k.Status().Failed == nil {
		err := k.join(k.life, true, k.series.id())
		var outage *OutageError
		if errors.As(err, &outage) {
			sleep(k.life, time.Second)
			continue
		}
		if err == nil {
			err = k.series.fits(k)
		}
		if err != nil {
			k.Abandon(err)
		}
		return
	}
}

// Clocks reads the process's clocks.
func (k *keeper) Clocks() block.Now { return k.series.clocks() }

// Do does what the machine asks and returns what came of it.
func (k *keeper) Do(do block.Action, patience, grace time.Duration) block.Answer {
	ctx, cancel := k.within(patience, grace)
	defer cancel()
	return request(ctx, k.store, do)
}

// Update reads a record and writes what f makes of it, with nobody in between.
func (k *keeper) Update(key string, patience, grace time.Duration, f func(store.Record) ([]byte, error)) (store.Record, error) {
	ctx, cancel := k.within(patience, grace)
	defer cancel()
	return k.updater.Update(ctx, key, f)
}

// request does what the machine asks and returns what came of it.
func request(ctx context.Context, st store.Store, do block.Action) block.Answer {
	if do.Op == record.Sleep {
		sleep(ctx, do.Pause)
		return block.Answer{}
	}
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

// within returns a context that is done after patience, or when the series has been closed for
// grace.
func (k *keeper) within(patience, grace time.Duration) (context.Context, context.CancelFunc) {
	if grace == 0 {
		return context.WithTimeout(k.life, patience)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.life), patience)
	stop := context.AfterFunc(k.life, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(ctx, func() { t.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}

// Rest waits for a call that wakes the lane, or until d has passed.
func (k *keeper) Rest(d time.Duration) (passed bool) {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-k.life.Done():
	case <-k.nudge:
	case <-over:
		return true
	}
	return false
}

// Wake ends the Rest.
func (k *keeper) Wake() {
	select {
	case k.nudge <- struct{}{}:
	default:
	}
}

// Stepped logs when the store goes away, and when it is back.
func (k *keeper) Stepped(_ block.Event, _ block.Action, away time.Time, now supply.Status) {
	switch since := now.Driver.Away; {
	case k.life.Err() != nil || away.IsZero() == since.IsZero():
	case away.IsZero():
		st := k.series.state(now)
		k.log.Warn("the store does not answer", "left", st.Left, "lasts", st.Lasts.Round(time.Millisecond), "err", st.Err)
	default:
		k.log.Info("the store answers again", "after", time.Since(away).Round(time.Millisecond))
	}
}

// Failed logs why nothing of the store is issued any more.
func (k *keeper) Failed(err error) {
	err = explain(k.series.name, err)
	k.log.Error("nothing is issued any more", "err", err, "hint", nextStep(err))
}
