package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
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

	waiting chan struct{} // has one when the lease began to wait for its first id
	stop    context.CancelFunc
	done    sync.WaitGroup
	closing sync.Once
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

var errOpening = errors.New("its store has not answered yet")

// newSupply returns a supply that is not open.
func newSupply(d *outlet, log *slog.Logger) *supply {
	s := &supply{key: d.Key(), drawing: d, bare: log.With("kind", d.Kind), began: time.Now(), waiting: make(chan struct{}, 1)}
	s.log, s.source = s.bare, &server.Source{State: s.state}
	if d.Name != "" && d.Kind != config.Flake {
		s.log = s.bare.With("series", d.Name)
	}
	s.stop = func() {}
	s.trouble.Store(&errOpening)
	return s
}

// close gives back what the supply holds. It may be repeated.
func (s *supply) close() (err error) {
	s.stop()
	s.done.Wait()
	if now := s.now.Load(); now != nil {
		s.closing.Do(func() { err = now.close() })
	}
	return err
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

// idle is why the supply gives nothing now; nil if it does. A counter that is open gives.
func (s *supply) idle() error {
	now, err := s.flow()
	if err != nil || now.idle == nil {
		return err
	}
	return now.idle()
}

// state is that of the supply, open or not.
func (s *supply) state() server.State {
	now, err := s.flow()
	if err == nil {
		return now.state()
	}
	d := s.drawing
	st := server.State{Kind: d.Kind, Store: d.storeText(), Err: err, StartsAt: startOf(err)}
	st.UnreadyAlone = d.Kind == config.Document && !errors.Is(err, errOpening) // a server that starts waits for the first answer
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
	return id, awaited(err)
}

func (s *supply) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	now, err := s.flow()
	if err != nil {
		return dst, err
	}
	dst, err = now.src.Append(ctx, dst, n)
	now.heed(err)
	return dst, awaited(err)
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
