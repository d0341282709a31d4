package open

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// An App is what a program uses of its settings: stores, leases and series, each opened
// when it is first asked for, and open until Close. Series of one pool share one lease. It is
// safe for concurrent use; while one series is being opened, others wait.
type App struct {
	cfg     *config.Config
	options Options

	mu     sync.Mutex
	closed bool
	stores map[string]*fromurl.Store // by URL
	leases map[string]*lease.Lease   // by all that they are made of
	series map[string]*Series        // those that count, by name
}

// Config returns what the settings describe, with nothing opened yet. A nil *Options is all
// defaults.
func Config(cfg *config.Config, o *Options) *App {
	a := &App{cfg: cfg, stores: map[string]*fromurl.Store{}, leases: map[string]*lease.Lease{}, series: map[string]*Series{}}
	if o != nil {
		a.options = *o
	}
	return a
}

// Source returns the ids or the numbers of a series, as firn next draws them. Where firn.yaml
// lists no series, a name is that of a counter of the store, or else of ids of the pool.
// A document whose texts are no numbers is an error: see [App.Document].
//
// It waits for the store, and for a worker at most as long as the pool's setting wait says.
func (a *App) Source(ctx context.Context, series string) (firn.Source, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.chosen(ctx, series)
	if err != nil {
		return nil, err
	}
	if s.Kind == config.Flake {
		return a.lease(ctx, s)
	}
	if p, err := document.ParsePattern(s.Options.Document.Pattern); s.Kind == config.Document && (err != nil || !p.IsNumeric()) {
		return nil, &config.Error{Err: fmt.Errorf("config/open: series %s gives texts, and no numbers: use Document", series)}
	}
	one, err := a.counter(ctx, s)
	if err != nil {
		return nil, err
	}
	if one.Texts != nil {
		return one.Texts.Source()
	}
	return one.Numbers, nil
}

// Document returns a series of texts. A series of any other kind is an error: see
// [App.Source]. It waits for the store.
func (a *App) Document(ctx context.Context, series string) (*document.Series, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.chosen(ctx, series)
	if err != nil {
		return nil, err
	}
	if s.Kind != config.Document {
		return nil, &config.Error{Err: fmt.Errorf("config/open: series %s gives numbers, and no texts: use Source", series)}
	}
	one, err := a.counter(ctx, s)
	if err != nil {
		return nil, err
	}
	return one.Texts, nil
}

// Lease returns the lease that series of a pool share; "" is the pool that is meant where none
// is named.
func (a *App) Lease(ctx context.Context, pool string) (*lease.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, err := a.cfg.LeasingOf(pool)
	if err != nil {
		return nil, err
	}
	return a.lease(ctx, &config.Series{Kind: config.Flake, URLs: []string{l.URL}, Leasing: l})
}

// Store returns the store that the settings name, or the default file of this user. It stays
// open until Close.
func (a *App) Store(ctx context.Context) (store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store(ctx, a.cfg.StoreURL().Text)
}

// Close gives back what is open: first the workers and numbers of all series, then the stores.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for _, s := range a.series {
		errs = append(errs, s.Close())
	}
	for _, l := range a.leases {
		errs = append(errs, l.Close())
	}
	for _, s := range a.stores {
		errs = append(errs, s.Close())
	}
	clear(a.series)
	clear(a.leases)
	clear(a.stores)
	return errors.Join(errs...)
}

// chosen returns what the settings say of a series. Where the file lists none, the store is
// asked for a counter of the name, and nothing else says of which kind it is.
func (a *App) chosen(ctx context.Context, name string) (*config.Series, error) {
	if a.closed {
		return nil, firn.ErrClosed
	}
	listed, err := a.cfg.SeriesNamed(name)
	if err != nil || listed != nil || a.cfg.KindSaid() {
		return choose(a.cfg, name, nil, err)
	}
	st, err := a.store(ctx, a.cfg.StoreURL().Text)
	if err != nil {
		return nil, err
	}
	there, err := countername.Counter(ctx, st, name)
	return choose(a.cfg, name, there, err)
}

func choose(cfg *config.Config, name string, there *config.Counter, err error) (*config.Series, error) {
	if err != nil {
		return nil, err
	}
	return cfg.Chosen(name, there)
}

// storeOf opens a store of a series. Drawing begins no ticket, so a file of one that is not there was
// moved or lost, and none is made in its place.
func (a *App) storeOf(ctx context.Context, s *config.Series, url string) (*fromurl.Store, error) {
	if len(s.URLs) > 1 {
		return a.storeAt(ctx, url, nil)
	}
	return a.store(ctx, url)
}

// store opens a store, and makes its file where there is none.
func (a *App) store(ctx context.Context, url string) (*fromurl.Store, error) {
	return a.storeAt(ctx, url, func(path string, _ bool) {
		if a.options.Logger != nil {
			a.options.Logger.Info("created the store: ids are unique among the programs that use this file", "file", path)
		}
	})
}

func (a *App) storeAt(ctx context.Context, url string, made OnMade) (*fromurl.Store, error) {
	if a.closed {
		return nil, firn.ErrClosed
	}
	if s := a.stores[url]; s != nil {
		return s, nil
	}
	s, err := Store(ctx, url, made)
	if err == nil {
		a.stores[url] = s
	}
	return s, err
}

// open opens the stores of a series, and then the series.
func (a *App) open(ctx context.Context, s *config.Series) (*Series, error) {
	var stores []store.Store
	for _, url := range s.URLs {
		st, err := a.storeOf(ctx, s, url)
		if err != nil {
			return nil, whichstore.At(s, url, err)
		}
		stores = append(stores, st)
	}
	return OpenSeries(ctx, s, stores, &a.options)
}

func (a *App) lease(ctx context.Context, s *config.Series) (*lease.Lease, error) {
	key := s.Key()
	if l := a.leases[key]; l != nil {
		return l, nil
	}
	one, err := a.open(ctx, s)
	if err != nil {
		return nil, err
	}
	a.leases[key] = one.Lease
	return one.Lease, nil
}

func (a *App) counter(ctx context.Context, s *config.Series) (*Series, error) {
	if one := a.series[s.Name]; one != nil {
		return one, nil
	}
	one, err := a.open(ctx, s)
	if err != nil {
		return nil, err
	}
	a.series[s.Name] = one
	return one, nil
}
