package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// A supply is what one series or more of a server draw from. Flakes of one pool
// share one. Where its store does not answer yet, it is tried again until it does,
// and calls are told why they have to come again.
type supply struct {
	key     string // all that it was made of
	drawing *drawing
	log     *slog.Logger
	bare    *slog.Logger // for the series, which says its name itself
	began   time.Time

	now     atomic.Pointer[flowing] // nil: not open yet
	trouble atomic.Pointer[error]   // why it is not

	stop context.CancelFunc
	done sync.WaitGroup
}

// A flowing supply is open. Of src and texts one is set.
type flowing struct {
	src     firn.Source
	texts   server.TextSource
	reserve func(ctx context.Context, n int) (firn.Range, error)
	state   func() server.State
	final   func() error // why nothing comes from it ever again; nil if it may
	heed    func(error)  // an error that a call got
	ended   func() error // why its store gives nothing any more; nil if it does, or the series knows itself
	close   func() error

	// Of numbers, by the place of a store.
	finalAt func(place int) error
	abandon func(place int, err error)

	// Of a lease.
	layout  firn.Layout                                      // of a flake's ids
	workers func(ctx context.Context) ([]pool.Worker, error) // of the pool; nil: there is none
}

// supplyKey says all that a supply is made of: those of one key are one.
func (d *drawing) supplyKey() string {
	if d.kind == kindFlake {
		o := d.leasing.options
		o.Logger = nil
		return fmt.Sprintf("%q %q %+v", d.urls, d.leasing.pool, o)
	}
	o := d.options
	o.segment.Logger, o.serial.Logger = nil, nil
	return fmt.Sprintf("%q %s %q %+v", d.urls, d.kind, d.name, o)
}

// A NotOpenError says that a series is not open yet.
type notOpenError struct {
	err   error
	since time.Time // it is being opened
}

func (e *notOpenError) Error() string {
	return "it is not open yet: " + ui.WithoutPackage(e.err.Error())
}
func (e *notOpenError) Unwrap() error { return e.err }

var errOpening = errors.New("its store was not heard yet")

// newSupply returns a supply that is not open.
func newSupply(d *drawing, log *slog.Logger) *supply {
	s := &supply{key: d.supplyKey(), drawing: d, bare: log.With("kind", d.kind), began: time.Now()}
	s.log = s.bare
	if d.name != "" && d.kind != kindFlake {
		s.log = s.bare.With("series", d.name)
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
			if s.drawing.missingOf(err) != nil { // not where somebody creates it
				what = "the store lacks it; the server looks again every few seconds, and creates nothing"
			}
			s.log.Error(what, withHint(s.drawing.hintOf(err), "err", err)...)
		}
	}
}

// needsSIGHUP reports whether an error of opening ends the looking: the server opens the supply
// only when somebody says by SIGHUP, or by a restart, that the cause is mended.
//
//   - A store that lost writes, was replaced, or has lost a pool: a backup that is put back
//     looks sound, and ids from it repeat until firn store recover has run.
//   - A record that this program cannot read: the cure is a backup, or a newer program.
//   - Settings of the server, and a layout that differs from the pool's, which never changes:
//     the server reads its settings at SIGHUP.
//   - A layout whose time is over.
func needsSIGHUP(err error) bool {
	return isA[*store.ForgotError](err) || isA[*store.OtherStoreError](err) || isA[*document.InstanceError](err) || isA[*lostPoolError](err) ||
		isA[*store.FormatError](err) ||
		isA[*lease.OptionError](err) || isA[*lease.LayoutError](err) || isA[*open.URLError](err) ||
		isA[*firn.EndError](err)
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

// look returns an error if a store lacks what the drawing draws from. It creates nothing, also
// in a file of this host, where to open a series may begin it.
//
// A serial that has given nothing is a *failure: whoever has lost one creates it again and
// then raises it, and what it gave in between would be given twice. A segment is created at
// the number that it begins with, and a pool with the time.
func (d *drawing) look(ctx context.Context, shared *sharedStores) error {
	for _, url := range d.urls {
		u, err := shared.enter(ctx, url)
		if err != nil {
			return d.at(url, err)
		}
		if d.kind == kindFlake {
			_, err = pool.Show(ctx, u.watched(), d.leasing.pool)
		} else {
			err = d.absent(ctx, u.watched(), store.Durability{})
		}
		if err == nil && d.kind == kindSerial {
			err = d.given(ctx, u.watched())
		}
		if err = errors.Join(err, shared.leave(u)); err != nil {
			return err
		}
	}
	return nil
}

// given returns an error if a serial has given nothing yet.
func (d *drawing) given(ctx context.Context, st store.Store) error {
	info, err := document.Show(ctx, st, d.name)
	if err != nil || info.Count > 0 {
		return err
	}
	return ui.Failed("the serial %s is there now, and has given nothing yet", d.name).
		Hint("if it existed before, or this store was restored or lost: firn serials raise %s TEXT, with TEXT the last one given out; the server begins after that", phrase.ShellWord(d.name)).
		Hint("only if it is new: SIGHUP to this server begins it")
}

// try opens the supply.
func (s *supply) try(ctx context.Context, stores *sharedStores) error {
	now, err := s.drawing.flow(ctx, stores, s.bare)
	var early *lease.NotYetError
	if errors.As(err, &early) {
		err = ui.Rename(fmt.Sprintf("the ids of pool %q start at %s, because an earlier process may have issued ids up to then; the server waits for that",
			early.Pool, early.StartsAt.UTC().Format(time.RFC3339)), err)
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
	if l := s.drawing.leasing.options.Layout; l.IsValid() {
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
	st := server.State{Kind: d.kind, Store: d.storeText(), Err: err}
	if now == nil {
		st.Away = s.began
	}
	if d.kind == kindFlake {
		st.Pool = d.leasing.pool
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

// texts is a supply of serials.
type textSupply struct{ *supply }

func (s textSupply) Append(ctx context.Context, dst []document.Number, n int) ([]document.Number, error) {
	now, err := s.flow()
	if err != nil {
		return dst, err
	}
	dst, err = now.texts.Append(ctx, dst, n)
	now.heed(err)
	return dst, err
}

// flow opens a series for a server.
func (d *drawing) flow(ctx context.Context, shared *sharedStores, log *slog.Logger) (_ *flowing, err error) {
	var stores []store.Store
	var users []*sharedStore
	leave := func() error {
		var errs []error
		for _, u := range users {
			errs = append(errs, shared.leave(u))
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, leave())
		}
	}()
	for _, url := range d.urls {
		u, err := shared.enter(ctx, url)
		if err != nil {
			return nil, d.at(url, err)
		}
		users, stores = append(users, u), append(stores, u.watched())
	}
	if err := d.checkStores(ctx, stores); err != nil {
		return nil, err
	}
	begins, err := d.begins(ctx, stores)
	if err != nil {
		return nil, err
	}
	var now *flowing
	switch d.kind {
	case kindFlake:
		now, err = d.flowLease(ctx, stores[0], log)
	case kindSerial:
		now, err = d.flowSerial(ctx, users[0], log)
	default:
		now, err = d.flowSegment(ctx, stores, log)
	}
	if err != nil {
		return nil, err
	}
	if begins {
		log.Info("created a new counter", "series", d.name, "first", d.firstNumber(), "store", d.storeText())
	}
	closeSeries := now.close
	part, err := d.joinStores(users, now)
	if err != nil {
		part()
		return nil, errors.Join(err, closeSeries())
	}
	now.close = func() error { part(); return errors.Join(closeSeries(), leave()) }
	return now, nil
}

// joinStores makes what is open a member of its stores, so that it ends with what others
// find out about them, and they with what it does.
func (d *drawing) joinStores(users []*sharedStore, now *flowing) (part func(), err error) {
	members := make([]*member, len(users))
	for i, u := range users {
		members[i] = &member{kind: d.kind, final: now.final}
		if now.abandon != nil {
			members[i].final = func() error { return now.finalAt(i) }
			members[i].abandon = func(err error) { now.abandon(i, err) }
		}
		err = errors.Join(err, u.join(members[i]))
	}
	now.ended = func() error { return nil }
	now.heed = func(error) {} // of a ticket nobody knows which store it is about
	if len(users) == 1 {
		now.heed = func(err error) {
			if err != nil {
				users[0].heed(d.kind, err)
			}
		}
		if now.abandon == nil {
			now.ended = users[0].ended
		}
	}
	return func() {
		for i, u := range users {
			u.part(members[i])
		}
	}, err
}

func (d *drawing) flowLease(ctx context.Context, st store.Store, log *slog.Logger) (*flowing, error) {
	creates := d.leasing.creates(ctx, st)
	l, err := d.leasing.open(ctx, st, log)
	if err != nil {
		return nil, err
	}
	if creates {
		log.Info("created the first pool", "pool", d.leasing.pool, "layout", layoutName(l.State().Layout), "store", d.storeText())
	}
	at := d.storeText()
	return &flowing{
		src: l, close: l.Close, layout: l.State().Layout,
		state:   func() server.State { return leaseState(l, at) },
		workers: func(ctx context.Context) ([]pool.Worker, error) { return poolWorkers(ctx, st, l) },
		final: func() error {
			if now := l.State(); now.Phase == term.Forgotten {
				return now.Err
			}
			return nil
		},
	}, nil
}

func (d *drawing) flowSegment(ctx context.Context, stores []store.Store, log *slog.Logger) (*flowing, error) {
	o := d.options.segment
	o.Logger = log
	var s *sequence.Series
	var err error
	if d.kind == kindTicket {
		s, err = sequence.OpenAcross(ctx, stores, d.name, &o)
	} else {
		s, err = sequence.Open(ctx, stores[0], d.name, &o)
	}
	if err != nil {
		return nil, err
	}
	at := segmentFacts{kind: d.kind, store: d.storeText(), increment: max(o.Increment, 1), lasts: cmp.Or(o.CacheFor, block.DefaultCacheFor)}
	return &flowing{
		src: s, close: s.Close, reserve: s.Reserve,
		state:   func() server.State { return segmentState(s, at) },
		final:   func() error { return unforgiven(s.State().Err) },
		finalAt: func(place int) error { return unforgiven(s.States()[place].Err) },
		abandon: s.Abandon,
	}, nil
}

func (d *drawing) flowSerial(ctx context.Context, st *sharedStore, log *slog.Logger) (*flowing, error) {
	o := d.options.serial
	o.Logger = log
	s, err := document.Open(ctx, st.watched(), d.name, &o)
	if err != nil {
		return nil, err
	}
	at, heard := d.storeText(), st.pulse
	return &flowing{
		texts: s, close: s.Close,
		state: func() server.State { return serialState(s, at, heard.last()) },
		final: func() error { return unforgiven(s.State().Err) },
	}, nil
}

// storeText is the URL of the stores of a series, without secrets.
func (d *drawing) storeText() string {
	var all []string
	for _, url := range d.urls {
		all = append(all, open.Redact(storeText(url)))
	}
	return strings.Join(all, ", ")
}

// storeText is the URL of a store, "" being the implicit one.
func storeText(url string) string {
	if url != "" {
		return url
	}
	path, err := implicitStore()
	if err != nil {
		return "the default"
	}
	return "sqlite:" + path
}

// passes reports whether an error of a supply passes by itself. Here the deadline of one try
// does, and so does the end of a supply that is being replaced.
func passes(err error) bool {
	return firn.Retryable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, firn.ErrClosed)
}
