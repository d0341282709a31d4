package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store/open"
)

// sharedStores are the stores that a server's series use. Each is opened once, and
// closed when the last series has left it.
type sharedStores struct {
	mu    sync.Mutex // of byURL and users
	byURL map[string]*sharedStore
	made  onMade
}

type sharedStore struct {
	url   string
	users int

	opening sync.Mutex  // guards the rest
	store   *open.Store // nil: not open
	pulse   *pulse
}

// newSharedStores tells log of each SQLite file that is made.
func newSharedStores(log *slog.Logger) *sharedStores {
	made := func(path string, _ bool) {
		log.Info("created the store: ids are unique among the programs that use this file", "file", path)
		if text := madeInContainer(path); text != "" {
			log.Warn(text)
		}
	}
	return &sharedStores{byURL: map[string]*sharedStore{}, made: made}
}

// enter returns the store of a URL, open. Who has entered leaves.
func (x *sharedStores) enter(ctx context.Context, url string) (*sharedStore, error) {
	x.mu.Lock()
	s := x.byURL[url]
	if s == nil {
		s = &sharedStore{url: url}
		x.byURL[url] = s
	}
	s.users++
	x.mu.Unlock()

	s.opening.Lock()
	var err error
	if s.store == nil {
		s.store, err = openURL(ctx, url, x.made)
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
	if last {
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

// listen makes sure that the store's pulse is taken, and returns it.
func (s *sharedStore) listen() *pulse {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.pulse == nil {
		s.pulse = newPulse(s.store)
	}
	return s.pulse
}

// A pulse asks a store again and again whether it is there: for series that need it
// at each call, and would otherwise notice by a call that fails.
type pulse struct {
	err  atomic.Pointer[error] // what came of it last
	stop func()
}

// How often a store is asked, and for how long it may think about it.
const (
	pulseEvery = 2 * time.Second
	pulseWait  = 5 * time.Second
)

func newPulse(s *open.Store) *pulse {
	p := new(pulse)
	p.err.Store(new(error))
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pulseEvery):
			}
			asked, cancel := context.WithTimeout(ctx, pulseWait)
			_, err := s.Promise(asked)
			cancel()
			if ctx.Err() == nil {
				p.err.Store(&err)
			}
		}
	})
	p.stop = func() { cancel(); done.Wait() }
	return p
}

// last is why the store did not answer; nil if it did.
func (p *pulse) last() error { return *p.err.Load() }
