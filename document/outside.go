package document

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
)

// An outside is what package dated asks of the system, for one call, for the goroutine that
// draws, or for Close. Its methods are called with the lock held; those that wait let go of it.
type outside struct {
	*Series
	ctx   context.Context
	ready chan struct{} // of a call that waits
}

func (o *outside) Clocks() dated.Instant { return o.clocks() }

// clocks reads the process's clocks.
func (s *Series) clocks() dated.Instant {
	now := time.Now()
	return dated.Instant{Wall: now.Round(0), Mono: now.Sub(s.base)}
}

func (o *outside) Ask(do dated.Action) record.Answer {
	o.mu.Unlock()
	defer o.mu.Lock()
	if do.Pause > 0 {
		pause(o.ctx, rand.N(do.Pause))
	}
	ctx, cancel := context.WithTimeout(o.ctx, dated.Patience)
	defer cancel()
	return do.Send(ctx, o.store)
}

// pause waits, and less where ctx is done sooner.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (o *outside) Go() {
	o.done.Go(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.series.Draw(&outside{Series: o.Series, ctx: o.life})
	})
}

func (o *outside) Rest() {
	o.mu.Unlock()
	defer o.mu.Lock()
	o.done.Wait()
}

func (o *outside) Gone() error { return o.ctx.Err() }

func (o *outside) Wait() {
	o.ready = make(chan struct{})
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-o.ready:
	case <-o.ctx.Done():
	}
}

func (o *outside) Wake() { close(o.ready) }
