package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// sharedStores are the stores that a server's series use. Each is opened once, and
// closed when the last series has left it.
type sharedStores struct {
	log    *slog.Logger
	advise func(Problem) string
	mu     sync.Mutex // of the rest, and of users
	byURL  map[string]*sharedStore
	made   open.OnMade          // nil: no file is made
	unused map[string]time.Time // those that were renewed for a reload that failed, and when they ended

	beginning sync.Mutex // held while a counter is created
}

// A sharedStore is a store that series of a server draw from. Where one of them finds that
// the store has forgotten something, or is another one, the others have numbers of it in
// hand too, which it may give to somebody else: then none of them gives anything any more.
type sharedStore struct {
	url    string
	users  int
	log    *slog.Logger
	advise func(Problem) string

	opening sync.Mutex     // guards the next two
	store   *fromurl.Store // nil: not open
	pulse   *pulse

	first   atomic.Pointer[string] // what the store said of itself first; nil: nothing yet
	lossy   atomic.Bool            // it is lossy, as last heard
	err     atomic.Pointer[error]  // why it gives nothing any more; nil: it does
	endedAt atomic.Int64           // when it ended, in nanoseconds since 1970
	joining sync.Mutex             // guards members
	members map[*member]bool
}

// A member is what one series has of a shared store.
type member struct {
	kind    string
	final   func() error    // why it has ended for good; nil: it has not
	abandon func(err error) // ends it; nil: it asks the sharedStore before each use
}

// newSharedStores tells log of each SQLite file that is made.
func newSharedStores(log *slog.Logger, advise func(Problem) string) *sharedStores {
	made := func(path string, _ bool) {
		log.Info("created the store: ids are unique among the programs that use this file", "file", path)
		if text := whichstore.InContainer(path); text != "" {
			log.Warn(text)
		}
	}
	return &sharedStores{log: log, advise: advise, byURL: map[string]*sharedStore{}, made: made, unused: map[string]time.Time{}}
}

// started is for when the server has begun: a file that is missing from now on was moved,
// or a config is mistyped, and a new one would be another store.
func (x *sharedStores) started() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made = nil
}

// renew has those stores opened anew that give nothing any more. Somebody has said that they are
// mended. It returns them for settle.
func (x *sharedStores) renew(mended func(url string) bool) map[string]time.Time {
	all := x.ended()
	maps.DeleteFunc(all, func(url string, _ time.Time) bool { return !mended(url) })
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.byURL, func(url string, s *sharedStore) bool { return s.ended() != nil && mended(url) })
	return all
}

// settle is told what came of the reload that stores were renewed for. Where it failed, the series
// still draw from the stores as they were: the server has to look for a recovery again.
func (x *sharedStores) settle(renewed map[string]time.Time, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for url, since := range renewed {
		if err == nil {
			delete(x.unused, url)
		} else {
			x.unused[url] = since
		}
	}
}

// enter returns the store of a URL, open. Who has entered leaves.
func (x *sharedStores) enter(ctx context.Context, url string) (*sharedStore, error) {
	x.mu.Lock()
	made := x.made
	x.mu.Unlock()
	return x.enterMaking(ctx, url, made)
}

// enterMaking is enter, with made as open.Store takes it.
func (x *sharedStores) enterMaking(ctx context.Context, url string, made open.OnMade) (*sharedStore, error) {
	x.mu.Lock()
	s := x.byURL[url]
	if s == nil {
		s = &sharedStore{url: url, log: x.log, advise: x.advise, members: map[*member]bool{}}
		x.byURL[url] = s
	}
	s.users++
	x.mu.Unlock()

	s.opening.Lock()
	err := s.ended()
	if err == nil && s.store == nil {
		if s.store, err = open.Store(ctx, url, made); err == nil {
			s.pulse = newPulse(s)
		}
	}
	s.opening.Unlock()
	if err != nil {
		x.leave(s)
		return nil, err
	}
	return s, nil
}

// leave closes a store if nobody uses it any more.
func (x *sharedStores) leave(s *sharedStore) error {
	x.mu.Lock()
	s.users--
	last := s.users == 0
	if last && x.byURL[s.url] == s {
		delete(x.byURL, s.url)
	}
	x.mu.Unlock()
	if !last {
		return nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.pulse != nil {
		s.pulse.stop()
	}
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// ended is why the store gives nothing any more; nil if it does.
func (s *sharedStore) ended() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// end has nothing given any more of what the store granted.
func (s *sharedStore) end(err error) {
	s.endedAt.CompareAndSwap(0, time.Now().UnixNano())
	if !s.err.CompareAndSwap(nil, &err) {
		return
	}
	s.log.Error("nothing is given any more of what this store granted, until the store is recovered, or SIGHUP says that it is mended", "store", fromurl.Redact(whichstore.Text(s.url)), "err", err, "hint", advice(s.advise, Problem{Store: whichstore.Text(s.url), Err: err}))
	for _, m := range s.joined() {
		if m.abandon != nil {
			m.abandon(err)
		}
	}
}

func (s *sharedStore) joined() []*member {
	s.joining.Lock()
	defer s.joining.Unlock()
	var all []*member
	for m := range s.members {
		all = append(all, m)
	}
	return all
}

// join adds a member, and returns an error if it comes too late. Who has joined parts.
func (s *sharedStore) join(m *member) error {
	s.joining.Lock()
	defer s.joining.Unlock()
	s.members[m] = true
	return s.ended()
}

func (s *sharedStore) part(m *member) {
	s.joining.Lock()
	defer s.joining.Unlock()
	delete(s.members, m)
}

// heed takes what a member says of itself. On a lossy store a counter may end
// where a pool goes on by clocks, so each ends by itself.
func (s *sharedStore) heed(kind string, err error) {
	if unforgiven(err) != nil && (kind == config.Flake || !s.lossy.Load()) {
		s.end(err)
	}
}

// hear takes what the store says of itself.
func (s *sharedStore) hear(p store.Durability, err error) {
	if unforgiven(err) != nil {
		s.end(err)
	}
	if err != nil {
		return
	}
	s.lossy.Store(!p.Durable)
	if p.Identity == "" || s.first.CompareAndSwap(nil, &p.Identity) {
		return
	}
	if err := record.CheckOther("what this server has in hand", p.Identity, *s.first.Load()); err != nil {
		s.end(err)
	}
}

// watched is the store as series see it: whoever hears of it, all do.
func (s *sharedStore) watched() store.Store { return &watchedStore{s.store, s} }

type watchedStore struct {
	*fromurl.Store
	shared *sharedStore
}

func (w *watchedStore) Durability(ctx context.Context) (store.Durability, error) {
	p, err := w.Store.Durability(ctx)
	w.shared.hear(p, err)
	return p, err
}

// Unwrap lets store.AsUpdater find what the store can.
func (w *watchedStore) Unwrap() store.Store { return w.Store }

// A pulse asks a store again and again whether it is there and still the same, and whether
// a series has found that it is not: for those that need it at each call, and would notice
// by a call that fails, and for those that have numbers in hand.
type pulse struct {
	last atomic.Pointer[heard] // what came of it last
	stop func()
}

// heard is what came of asking a store.
type heard struct {
	err   error     // why it did not answer; nil: it did
	since time.Time // when the first of the calls began that failed in a row; zero: the last one did not
}

// after returns what is heard when a call that began at a time ends with err.
func (h *heard) after(began time.Time, err error) *heard {
	switch {
	case err == nil:
		return new(heard)
	case h.err == nil:
		return &heard{err, began}
	}
	return &heard{err, h.since}
}

// How often a store is asked, for how long it may think about it, and how often its series
// are looked at.
const (
	pulseEvery = 2 * time.Second
	pulseWait  = 5 * time.Second
	lookEvery  = 250 * time.Millisecond
)

func newPulse(s *sharedStore) *pulse {
	p := new(pulse)
	p.last.Store(new(heard))
	ctx, cancel := context.WithCancel(context.Background())
	st := s.watched()
	var done sync.WaitGroup
	done.Go(func() {
		again(ctx, pulseEvery, func() {
			began := time.Now()
			asked, cancel := context.WithTimeout(ctx, pulseWait)
			_, err := st.Durability(asked)
			cancel()
			if ctx.Err() == nil {
				p.last.Store(p.last.Load().after(began, err))
			}
		})
	})
	done.Go(func() {
		again(ctx, lookEvery, func() {
			for _, m := range s.joined() {
				s.heed(m.kind, m.final())
			}
		})
	})
	p.stop = func() { cancel(); done.Wait() }
	return p
}

// again does something again and again, with a pause before each time, until ctx is done.
func again(ctx context.Context, pause time.Duration, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			do()
		}
	}
}

// unforgiven is err if a store has forgotten or is another one, which is final.
func unforgiven(err error) error {
	var forgot *store.ForgotError
	var other *store.OtherStoreError
	if errors.As(err, &forgot) || errors.As(err, &other) {
		return err
	}
	return nil
}
