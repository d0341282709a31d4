package daemon

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/lease"
)

// This file is how a supply is opened: at once, or in the background while the server answers.

// Between two tries to open a supply.
const (
	leastPause = 250 * time.Millisecond
	mostPause  = 2 * time.Second
	latePause  = 10 * time.Second // where the pool says when its ids start
	lookPause  = 6 * time.Second  // where the store lacks the pool or the counter
)

// atOnce is how long the server waits for a supply before it answers without it. It is more than a
// lease waits for a worker by default, so that the error of a full pool is known.
const atOnce = 7 * time.Second

// callPatience is how long a call waits for ids that are known to start later, after a lease has
// lost its worker. While a supply is opened calls wait no longer either: see lease.Options.Waiting.
const callPatience = time.Second

// begin tries to open the supply. It returns nil too where the supply is opened in the background,
// until close: while its ids start later, while what keeps it may pass, and where it takes long.
// Opened is called when the background has opened it.
func (s *supply) begin(ctx context.Context, stores *sharedStores, opened func()) error {
	return s.start(ctx, stores, opened, passes, time.After(atOnce))
}

// renew begins a supply in place of one of the same settings that has ended. Errors that may pass
// end it too: only where the ids start later it goes on in the background.
func (s *supply) renew(ctx context.Context, stores *sharedStores, opened func()) error {
	return s.start(ctx, stores, opened, startsLater, time.After(atOnce))
}

// await opens a supply of new settings. Where their ids start later it is opened in the background;
// any other error ends it, however late it comes.
func (s *supply) await(ctx context.Context, stores *sharedStores, opened func()) error {
	return s.start(ctx, stores, opened, startsLater, nil)
}

// relieve opens a supply for a series that gives ids from another one. It waits for the first id, which
// takes minutes on a store that can lose writes, unless newer is closed.
func (s *supply) relieve(ctx context.Context, stores *sharedStores, newer <-chan struct{}) error {
	life, stop := context.WithCancel(ctx)
	s.stop = stop
	tried := make(chan error, 1)
	s.done.Go(func() { tried <- s.try(life, stores) })
	select {
	case err := <-tried:
		return err
	case <-s.waiting:
	}
	s.log.Warn("the reload waits until the ids of a pool start; until then everything is as it was, and SIGHUP ends the wait and has the settings read again",
		"pool", s.drawing.Leasing.Pool, "starts_at", startOf(*s.trouble.Load()))
	select {
	case err := <-tried:
		return err
	case <-newer:
		return errNewer
	}
}

// errNewer ends the wait of a reload.
var errNewer = errors.New("SIGHUP has come again")

// startsLater reports whether an error says that the ids of a pool start later.
func startsLater(err error) bool { return errors.As(err, new(*lease.NotYetError)) }

// start is begin for errors that the background can wait for, and for a first try that has not
// ended when long fires.
func (s *supply) start(ctx context.Context, stores *sharedStores, opened func(), later func(error) bool, long <-chan time.Time) error {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	tried := make(chan error, 1)
	s.done.Go(func() { tried <- s.try(life, stores) })
	select {
	case err := <-tried:
		if err == nil || !later(err) || ctx.Err() != nil {
			return err
		}
		tried <- err
	case <-s.waiting: // the lease has logged it
	case <-long:
		s.log.Warn("opening it takes long; the server answers without it until it is open")
	case <-ctx.Done():
		return ctx.Err()
	}
	s.done.Go(func() { s.goOn(life, stores, opened, tried) })
	return nil
}

// pause ends the tries to open a supply that is not open, and closes one that gives nothing ever
// again. It reports whether the supply holds nothing then; of one that does nothing has changed.
func (s *supply) pause() bool {
	if s.now.Load() == nil {
		why := s.trouble.Load()
		if startsLater(*why) {
			return false // it has a worker
		}
		s.stop()
		s.done.Wait()
		s.trouble.Store(why) // not that of a try that was broken off
	}
	if s.now.Load() != nil && s.final() == nil {
		return false
	}
	s.close()
	return true
}

// resume tries again to open a supply that was paused. A supply that was open before the pause has ended, and is not opened again.
func (s *supply) resume(ctx context.Context, stores *sharedStores, opened func()) {
	if s.now.Load() != nil {
		return
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if err := *s.trouble.Load(); !needsSIGHUP(err) {
		s.done.Go(func() { s.insist(life, stores, opened) })
	}
}

// goOn waits for the first try, and tries again where it has failed.
func (s *supply) goOn(ctx context.Context, stores *sharedStores, opened func(), tried <-chan error) {
	err := <-tried
	switch {
	case ctx.Err() != nil:
	case err == nil:
		s.log.Info("open")
		opened()
	default:
		s.log.Warn("cannot be opened yet; trying again", withHint(s.drawing.hintOf(err), "err", err)...)
		s.insist(ctx, stores, opened)
	}
}

// waits tells that the supply has a worker, and that its ids start later.
func (s *supply) waits(startsAt time.Time, why string) {
	err := awaited(&lease.NotYetError{Pool: s.drawing.Leasing.Pool, StartsAt: startsAt, Why: why})
	s.trouble.Store(&err)
	select {
	case s.waiting <- struct{}{}:
	default:
	}
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
		case ctx.Err() != nil:
			return // the server ends
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
	if err != nil && !passes(err) && ctx.Err() == nil && (*s.trouble.Load()).Error() != err.Error() {
		s.trouble.Store(&err)
		s.log.Warn("not opened yet", withHint(s.drawing.hintOf(err), "err", err)...)
	}
	return err != nil
}

// try opens the supply.
func (s *supply) try(ctx context.Context, stores *sharedStores) error {
	now, err := s.drawing.flow(ctx, stores, open.Options{
		Logger: s.bare, Existing: s.existing, NextWait: callPatience, Waiting: s.waits,
	})
	if err != nil {
		err = awaited(err)
		s.trouble.Store(&err)
		return err
	}
	s.now.Store(now)
	return nil
}
