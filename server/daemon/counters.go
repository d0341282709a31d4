package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
)

// A server of any name serves the counters that its store has by their names, and
// flakes by all others, but not by names that are nearly those of counters. It lists the
// counters when it starts, when it reloads, and every few seconds. Until it has a list no
// name gives an id, because it may be that of a counter. A counter that is created meanwhile
// is found when its name is asked for first. If the name has given ids by then, it gives them
// until the next list.

// lookPatience bounds how long a name that is asked for first waits for the store.
const lookPatience = 2 * time.Second

// openPatience bounds how long the name of a new counter waits until the server has opened it.
const openPatience = 2 * time.Second

// addCounters adds the counters of the store to what a plan serves. A store that
// does not answer is no error: what is in force stays, or the plan says that it has
// no list.
func (o *service) addCounters(ctx context.Context, p *plan) error {
	if p.others == nil {
		return nil
	}
	p.names = &storeNames{stores: o.stores, url: p.others.URLs[0], most: max(p.options.Names, 200), again: o.relist, outdated: make(chan struct{}), flakesSaid: p.flakesSaid}
	before := o.plan
	if before == p || before.names == nil || before.names.url != p.names.url {
		before = nil
	}
	if before != nil {
		p.names.flakes, p.names.recovered = before.names.seen(), before.names.recovered
	}
	found, recovered, err := p.names.list(ctx)
	switch {
	case err != nil && passes(err) && before != nil && before.unlisted == nil:
		p.series = before.series
		return nil
	case err != nil && passes(err):
		p.unlisted = err
		return nil
	case err != nil:
		return &SeriesError{p.others.Series, err}
	}
	p.names.recovered = recovered
	if p.names.mayBeLost() {
		p.names.flakes = nil // a name may have given ids since the store lost its counter
		if before != nil && !before.names.mayBeLost() {
			if err := o.distrust(); err != nil {
				return err
			}
		}
	}
	p.names.forget(found, o.log)
	p.series = found
	if o.plan != p {
		p.series = append(found, o.plan.lost(found, p.names.url)...)
	}
	for _, d := range p.series {
		d.advise = p.others.advise
	}
	return nil
}

// storeNames are the names of a store, which tell counters from flakes.
type storeNames struct {
	stores *sharedStores
	url    string
	most   int
	again  chan<- struct{} // asks for a new list

	flakesSaid bool // somebody says that a name is a flake which no counter has
	recovered  bool // the store may have lost counters: it was recovered, or pool.Ensure created its first pool

	outdated chan struct{} // closed when the server goes by a newer list

	mu     sync.Mutex
	flakes map[string]string // names that no counter has, as far as was looked; the counter of nearly that name that the log named, or ""
}

// list returns what to draw from for each counter of the store, and whether it was recovered.
func (n *storeNames) list(ctx context.Context) (found []*outlet, recovered bool, err error) {
	u, err := n.stores.enter(ctx, n.url)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, n.stores.leave(u)) }()
	if recovered, err = countername.MayHaveLost(ctx, u.store); err != nil {
		return nil, false, err
	}
	numbers, err := sequence.List(ctx, u.store)
	if err != nil {
		return nil, false, err
	}
	texts, err := document.List(ctx, u.store)
	if err != nil {
		return nil, false, err
	}
	taken := map[string]bool{}
	add := func(name, kind string) *outlet {
		if taken[name] || server.CheckName(name) != nil && !template.Is(name) { // no client can ask for it
			return nil
		}
		taken[name] = true
		d := &outlet{Series: &config.Series{Name: name, Kind: kind, URLs: []string{n.url}}}
		found = append(found, d)
		return d
	}
	for _, in := range numbers {
		// A part of a sequence over several stores, and a record of a later firn, cannot be opened: the series says so.
		if d := add(in.Name, config.Sequence); d != nil {
			d.Options.Sequence.MayRepeat = in.MayRepeat
		}
	}
	for _, in := range texts {
		if d := add(in.Name, config.Document); d != nil {
			d.Options.Document.Pattern, d.Options.Document.Zone, d.Options.Document.MayRepeat = in.Pattern, in.Zone, in.MayRepeat
		}
	}
	return found, recovered, nil
}

// seen returns the names that were looked up and are flakes.
func (n *storeNames) seen() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.flakes)
}

// flake returns nil if the store has no counter of that name, nor of nearly that name: a
// name that was mistyped must not give an id in place of a number.
func (n *storeNames) flake(name string) error {
	n.mu.Lock()
	_, known := n.flakes[name]
	n.mu.Unlock()
	switch {
	case name == server.OtherNames && n.mayBeLost():
		return n.lost("NAME")
	case known || name == server.OtherNames:
		return nil
	}
	switch c, near, recovered, err := n.lookUp(name); {
	case err != nil && passes(err):
		return &newNameError{err}
	case err != nil:
		return err
	case recovered && !n.recovered && !n.flakesSaid:
		n.awaitNewer()
		return n.lost(name)
	case c != nil:
		n.awaitNewer()
		return &newCounterError{name, c.Kind}
	case near != "":
		return &server.NoSeriesError{Name: name, Nearest: near}
	case n.mayBeLost():
		return n.lost(name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flakes == nil {
		n.flakes = map[string]string{}
	}
	if len(n.flakes) < n.most {
		n.flakes[name] = ""
	}
	return nil
}

// forget has the names looked up again that are counters by now. A name that is nearly that of a new counter gives ids
// as before, because programs use it. A server that starts later cannot know that, and refuses it: the log says so.
func (n *storeNames) forget(found []*outlet, log *slog.Logger) {
	var counters []string
	for _, d := range found {
		counters = append(counters, d.Name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, warned := range n.flakes {
		if slices.Contains(counters, name) || slices.ContainsFunc(counters, func(counter string) bool { return template.Has(counter, name) }) {
			delete(n.flakes, name)
			log.Warn("a name that gave ids gives the numbers of a new counter from now on", "series", name)
			continue
		}
		if near := nearest.Misspelled(name, counters); near != "" && near != warned {
			n.flakes[name] = near
			log.Warn("a name that gives ids is nearly that of a new counter; a server that starts from now on refuses it: list the series of the server in firn.yaml first", "series", name, "counter", near)
		}
	}
}

// lookUp returns the counter of that name that the store has, or else the name of a counter
// that it is probably a misspelling of, "" if there is none, and whether the store was recovered.
func (n *storeNames) lookUp(name string) (c *config.Counter, near string, recovered bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	u, err := n.stores.enter(ctx, n.url)
	if err != nil {
		return nil, "", false, err
	}
	defer n.stores.leave(u)
	c, err = countername.Counter(ctx, u.store, name)
	if c != nil || err != nil {
		return c, "", false, err
	}
	if near, err = countername.Misspelled(ctx, u.store, name); err == nil {
		recovered, err = countername.MayHaveLost(ctx, u.store) // last: it may have happened meanwhile
	}
	return nil, near, recovered, err
}

// awaitNewer asks for a newer list, and waits until the server goes by one. Who asked for the
// name then looks again.
func (n *storeNames) awaitNewer() {
	select {
	case n.again <- struct{}{}:
	default: // it is asked for already
	}
	select {
	case <-n.outdated:
	case <-time.After(openPatience):
	}
}

// A newNameError says that the store has not answered whether it has a counter of a name that was not asked for
// before. The names that gave ids before still give them. Its text is the cause: troubles has the rest.
type newNameError struct{ err error }

func (e *newNameError) Error() string { return e.err.Error() }
func (e *newNameError) Unwrap() error { return e.err }

// A newCounterError says that a counter was created since the server listed them.
type newCounterError struct{ name, kind string }

func (e *newCounterError) Error() string {
	return fmt.Sprintf("the %s %s was created after the server last listed the counters of its store", e.kind, e.name)
}

// listEvery is how often a server of any name looks for counters that were created since,
// listPatience how long it waits for the list.
const (
	listEvery    = 5 * time.Second
	listPatience = 10 * time.Second
)

// errUnlisted says that there is nothing to reload for.
var errUnlisted = errors.New("the store does not answer yet, or has no new counter")

// listAgain reloads if the store can say by now which names are counters, or has one that is
// not served. What could not be opened is tried again when there is another one.
func (o *service) listAgain(ctx context.Context) error {
	if o.plan.names == nil {
		o.learn(ctx) // of a store that has not said yet which flakes have names of counters
		return errUnlisted
	}
	asked, cancel := context.WithTimeout(ctx, listPatience)
	began := time.Now()
	found, recovered, err := o.plan.names.list(asked)
	cancel()
	o.listTook = time.Since(began)
	if err != nil {
		return errUnlisted
	}
	var fresh []string
	for _, d := range found {
		if !slices.ContainsFunc(o.plan.series, func(s *outlet) bool { return s.Name == d.Name }) {
			fresh = append(fresh, d.Name)
		}
	}
	slices.Sort(fresh)
	if o.plan.unlisted == nil && recovered == o.plan.names.recovered && (len(fresh) == 0 || slices.Equal(fresh, o.refused)) {
		return errUnlisted
	}
	o.refused = nil
	err = o.reload(ctx, byItself)
	if err != nil && !passes(err) {
		o.refused = fresh
	}
	return err
}
