package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
)

// A supply is what one series or more of a server draw from. Flakes of one pool
// share one. Where its store does not answer yet, it is tried again until it does,
// and calls are told why they have to come again.
type supply struct {
	key     string // all that it was made of
	drawing *outlet
	// The store has to have what it draws from: opening the supply creates nothing.
	existing bool

	log    *slog.Logger
	bare   *slog.Logger // for the series, which says its name itself
	began  time.Time
	source *server.Source // the same for all series that draw from it

	now     atomic.Pointer[flowing] // nil: not open yet
	trouble atomic.Pointer[error]   // why it is not

	stop context.CancelFunc
	done sync.WaitGroup
}

// A NotOpenError says that a series is not open yet.
type notOpenError struct {
	err   error
	since time.Time // it is being opened
}

func (e *notOpenError) Error() string {
	return "it is not open yet: " + phrase.Reason(e.err)
}
func (e *notOpenError) Unwrap() error { return e.err }

var errOpening = errors.New("its store was not heard yet")

// newSupply returns a supply that is not open.
func newSupply(d *outlet, log *slog.Logger) *supply {
	s := &supply{key: d.Key(), drawing: d, bare: log.With("kind", d.Kind), began: time.Now()}
	s.log, s.source = s.bare, &server.Source{State: s.state}
	if d.Name != "" && d.Kind != config.Flake {
		s.log = s.bare.With("series", d.Name)
	}
	s.stop = func() {}
	s.trouble.Store(&errOpening)
	return s
}

// Between two tries to open a supply.
const (
	leastPause = 250 * time.Millisecond
	mostPause  = 2 * time.Second
	latePause  = 10 * time.Second // where the pool says when its ids start
	lookPause  = 6 * time.Second  // where the store lacks the pool or the counter
)

// begin tries to open the supply. Where that fails and may pass, it returns nil and
// goes on trying until close.
// Opened is called when a later try has opened the supply.
func (s *supply) begin(ctx context.Context, stores *sharedStores, opened func()) error {
	err := s.try(ctx, stores)
	if err == nil || !passes(err) || ctx.Err() != nil {
		return err
	}
	s.wait(ctx, stores, opened, err)
	return nil
}

// renew tries to open a supply in place of one of the same settings that has ended. Where the
// store was recovered and its ids start later, it returns nil and waits for that.
func (s *supply) renew(ctx context.Context, stores *sharedStores, opened func()) error {
	err := s.try(ctx, stores)
	if !errors.As(err, new(*lease.NotYetError)) || ctx.Err() != nil {
		return err
	}
	s.wait(ctx, stores, opened, err)
	return nil
}

// wait tries to open the supply until close.
func (s *supply) wait(ctx context.Context, stores *sharedStores, opened func(), err error) {
	s.log.Warn("cannot be opened yet; trying again", withHint(s.drawing.hintOf(err), "err", err)...)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.done.Go(func() { s.insist(life, stores, opened) })
}

// insist opens the supply as soon as that can be done. What somebody has to mend outside of the
// server, as a pool that is missing, is looked at again and again.
func (s *supply) insist(ctx context.Context, stores *sharedStores, opened func()) {
	told := "" // the error that somebody has to mend, as it was logged
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		wait := pause/2 + rand.N(pause/2)
		var early *lease.NotYetError
		if errors.As(*s.trouble.Load(), &early) { // the time is known
			wait += min(max(time.Until(early.StartsAt), 0), latePause)
		}
		if told != "" {
			wait = lookPause/2 + rand.N(lookPause/2)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if told != "" && s.notYet(ctx, stores) {
			continue
		}
		err := s.try(ctx, stores)
		switch {
		case err == nil:
			s.log.Info("open")
			opened()
			return
		case passes(err):
			told = ""
		case needsSIGHUP(err):
			s.log.Error("cannot be opened; SIGHUP tries again when that is mended", withHint(s.drawing.hintOf(err), "err", err)...)
			return
		case err.Error() != told:
			told = err.Error()
			what := "cannot be opened until that is mended; the server looks again every few seconds"
			if lacks(err) { // not where somebody creates it
				what = "the store lacks it; the server looks again every few seconds, and creates nothing"
			}
			s.log.Error(what, withHint(s.drawing.hintOf(err), "err", err)...)
		}
	}
}

// notYet reports that the store still lacks what the supply draws from, or that somebody may be
// about to raise it: the supply is not to be opened.
func (s *supply) notYet(ctx context.Context, stores *sharedStores) bool {
	err := s.drawing.look(ctx, stores)
	if err != nil && !passes(err) && (*s.trouble.Load()).Error() != err.Error() {
		s.trouble.Store(&err)
		s.log.Warn("not opened yet", withHint(s.drawing.hintOf(err), "err", err)...)
	}
	return err != nil
}

// try opens the supply.
func (s *supply) try(ctx context.Context, stores *sharedStores) error {
	now, err := s.drawing.flow(ctx, stores, s.bare, s.existing)
	var early *lease.NotYetError
	if errors.As(err, &early) {
		err = &waitsError{early}
	}
	if err != nil {
		s.trouble.Store(&err)
		return err
	}
	s.now.Store(now)
	return nil
}

// close gives back what the supply holds.
func (s *supply) close() error {
	s.stop()
	s.done.Wait()
	if now := s.now.Load(); now != nil {
		return now.close()
	}
	return nil
}

// layout is the layout of the ids: what the settings say, or else the pool, once it was
// read; zero where that is not known.
func (s *supply) layout() firn.Layout {
	if l := s.drawing.Leasing.Options.Layout; l.IsValid() {
		return l
	}
	if now := s.now.Load(); now != nil {
		return now.layout
	}
	return firn.Layout{}
}

// final is why nothing comes from the supply ever again; nil if it may.
func (s *supply) final() error {
	if now := s.now.Load(); now != nil {
		if err := now.ended(); err != nil {
			return err
		}
		return now.final()
	}
	if err := *s.trouble.Load(); !passes(err) {
		return err
	}
	return nil
}

// flow returns what is open, or why it cannot be had.
func (s *supply) flow() (*flowing, error) {
	if now := s.now.Load(); now != nil {
		return now, now.ended()
	}
	return nil, &notOpenError{*s.trouble.Load(), s.began}
}

// state is that of the supply, open or not.
func (s *supply) state() server.State {
	now, err := s.flow()
	if err == nil {
		return now.state()
	}
	d := s.drawing
	st := server.State{Kind: d.Kind, Store: d.storeText(), Err: err, StartsAt: startOf(err)}
	if now == nil {
		st.TroubleSince = s.began
	}
	if d.Kind == config.Flake {
		st.Lease = &server.Lease{Pool: d.Leasing.Pool}
	} else {
		st.Counter = &server.Counter{}
	}
	return st
}

// Next and Append draw ids.
func (s *supply) Next(ctx context.Context) (firn.ID, error) {
	now, err := s.flow()
	if err != nil {
		return 0, err
	}
	id, err := now.src.Next(ctx)
	now.heed(err)
	return id, err
}

func (s *supply) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	now, err := s.flow()
	if err != nil {
		return dst, err
	}
	dst, err = now.src.Append(ctx, dst, n)
	now.heed(err)
	return dst, err
}

func (s *supply) reserve(ctx context.Context, n int) (firn.Range, error) {
	now, err := s.flow()
	if err != nil {
		return firn.Range{}, err
	}
	r, err := now.reserve(ctx, n)
	now.heed(err)
	return r, err
}
