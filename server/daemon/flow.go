package daemon

import (
	"cmp"
	"context"
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store"
)

// A flowing supply is open. Of src and texts one is set.
type flowing struct {
	src     firn.Source
	texts   server.TextSource
	names   *names // of a template; nil: it is none
	reserve func(ctx context.Context, n int) (firn.Range, error)
	state   func() server.State
	idle    func() error // why no id comes now, though it may later; nil if one does; of a lease
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

// texts is a supply of documents.
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

// leftBehind is about a start with a config that names another file than before, which the server
// cannot notice.
const leftBehind = "if another store had it until now: stop this server and write that store back into the config, because here it begins again"

// flow opens a series for a server, by options that lack the name of the host.
func (d *outlet) flow(ctx context.Context, shared *sharedStores, o open.Options) (_ *flowing, err error) {
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
	enter := shared.enter
	if len(d.URLs) > 1 { // drawing begins no ticket, so a file that is not there was moved or lost
		enter = func(ctx context.Context, url string) (*sharedStore, error) { return shared.enterMaking(ctx, url, nil) }
	}
	for _, url := range d.URLs {
		u, err := enter(ctx, url)
		if err != nil {
			return nil, whichstore.At(d.Series, url, err)
		}
		users, stores = append(users, u), append(stores, u.watched())
	}
	o.Hostname, o.Beginning = d.hostname, &shared.beginning
	series, err := open.OpenSeries(ctx, d.Series, stores, &o)
	if err != nil {
		return nil, err
	}
	now := d.flowing(series, users, stores)
	if series.Began && d.Kind != config.Flake {
		o.Logger.Info("created a new counter", "series", d.Name, "first", d.Series.FirstNumber(), "store", d.storeText(), "hint", leftBehind)
	} else if series.Began {
		o.Logger.Info("created the first pool", "pool", d.Leasing.Pool, "layout", cmp.Or(now.layout.Name(), now.layout.String()), "store", d.storeText(), "hint", leftBehind)
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

// mayOpen returns the error of opening a counter, as far as it is known before the counter is
// created, and whether opening it creates it. It creates nothing.
func (d *outlet) mayOpen(ctx context.Context, shared *sharedStores) (creates bool, err error) {
	var stores []store.Store
	for _, url := range d.URLs {
		u, err := shared.enterMaking(ctx, url, nil)
		if err != nil {
			return false, whichstore.At(d.Series, url, err)
		}
		defer shared.leave(u)
		stores = append(stores, u.watched())
	}
	return open.CheckSeries(ctx, d.Series, stores)
}

// joinStores makes what is open a member of its stores, so that it ends with what others
// find out about them, and they with what it does.
func (d *outlet) joinStores(users []*sharedStore, now *flowing) (part func(), err error) {
	members := make([]*member, len(users))
	for i, u := range users {
		members[i] = &member{kind: d.Kind, final: now.final}
		if now.abandon != nil {
			members[i].final = func() error { return now.finalAt(i) }
			members[i].abandon = func(err error) { now.abandon(i, err) }
		}
		err = errors.Join(err, u.join(members[i]))
	}
	now.ended = func() error { return nil }
	now.heed = func(error) {} // of a sequence over several stores nobody knows which store it is about
	if len(users) == 1 {
		now.heed = func(err error) {
			if err != nil {
				users[0].heed(d.Kind, err)
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

// flowing is what a server draws from in a series that is open.
func (d *outlet) flowing(s *open.Series, users []*sharedStore, stores []store.Store) *flowing {
	switch {
	case s.Lease != nil:
		return flowLease(s.Lease, stores[0], d.storeText())
	case s.Numbers != nil:
		return flowNumbers(s.Numbers, sequenceFacts{
			kind: d.Kind, store: d.storeText(), increment: max(d.Options.Sequence.Increment, 1),
			lasts: cmp.Or(d.Options.Sequence.CacheFor, block.DefaultCacheFor),
		})
	}
	now := flowTexts(s.Texts, d.storeText(), users[0].pulse)
	if template.Is(d.Name) {
		now.names = &names{store: stores[0], template: d.Name, options: d.Options.Document, open: map[string]*name{}}
		now.final = now.names.final
		now.close = func() error { return errors.Join(now.names.close(), s.Texts.Close()) }
	}
	return now
}

func flowLease(l *lease.Lease, st store.Store, at string) *flowing {
	return &flowing{
		src: l, close: l.Close, layout: l.State().Layout, idle: func() error { return leaseIdle(l) },
		state:   func() server.State { return leaseState(l, at) },
		workers: func(ctx context.Context) ([]pool.Worker, error) { return poolWorkers(ctx, st, l) },
		final:   func() error { return unforgiven(l.State().Err) },
	}
}

func flowNumbers(s *sequence.Series, at sequenceFacts) *flowing {
	return &flowing{
		src: s, close: s.Close, reserve: s.Reserve,
		state:   func() server.State { return sequenceState(s, at) },
		final:   func() error { return unforgiven(s.State().Err) },
		finalAt: func(place int) error { return unforgiven(s.States()[place].Err) },
		abandon: s.Abandon,
	}
}

func flowTexts(s *document.Series, at string, p *pulse) *flowing {
	return &flowing{
		texts: s, close: s.Close,
		state: func() server.State { return documentState(s, at, p.last.Load()) },
		final: func() error { return unforgiven(s.State().Err) },
	}
}
