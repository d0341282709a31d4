package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/firn-id/firn/internal/template"
)

// OtherNames is the name that Options.Others is asked for first: that of the series which
// stands for all names that have none of their own. No client can ask for it.
const OtherNames = "(others)"

// others are the names that the server was not given. Clients make them up, so that there
// is no end to them: the first ones have a series of their own, which counts what was
// asked of them, for good. One series stands for all that come after. All of them draw
// from one source, and what a name is given does not depend on whether it has a series.
type others struct {
	make func(name string) (*Series, error) // nil: there are no such names
	most int                                // that have a series of their own
	rest *Series                            // of all others

	mu    sync.RWMutex // of what follows
	known map[string]*Series
}

// newOthers returns the others of a world. Those that had a series before have one again,
// and go on counting.
func newOthers(o *Options, before *world, given map[string]*Series) (*others, error) {
	all := &others{make: o.Others, most: o.MaxNames, known: map[string]*Series{}}
	if all.make == nil {
		return all, nil
	}
	var err error
	if all.rest, err = all.made(OtherNames); err != nil || before == nil {
		return all, err
	}
	if before.others.rest != nil {
		all.rest.follow(before.others.rest)
	}
	for _, old := range before.all() {
		if given[old.name] != nil || slices.ContainsFunc(template.Of(old.name), func(t string) bool { return given[t] != nil }) {
			continue
		}
		one, err := all.series(old.name)
		if errors.As(err, new(*NoSeriesError)) { // of what is served now the name is none
			continue
		}
		if err != nil {
			return nil, err
		}
		if one != all.rest {
			one.countOn(old)
		}
	}
	return all, nil
}

// made makes a series.
func (all *others) made(name string) (*Series, error) {
	one, err := all.make(name)
	if err == nil && one.name != name {
		err = fmt.Errorf("server: series %s was made for the name %s", one.name, name)
	}
	return one, err
}

// series returns the series of a name.
func (all *others) series(name string) (*Series, error) {
	all.mu.RLock()
	one, full := all.known[name], len(all.known) >= all.most
	all.mu.RUnlock()
	switch {
	case one != nil:
		return one, nil
	case full:
		return all.rest, nil
	}
	// Without the lock: whoever makes it may ask a store, and other names do not wait.
	one, err := all.made(name)
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if first := all.known[name]; first != nil {
		return first, nil
	}
	if len(all.known) >= all.most {
		return all.rest, nil
	}
	one.large, one.trouble = all.rest.large, all.rest.trouble // they are of one source, however many they are
	all.known[name] = one
	return one, nil
}

// named returns the series of the names that have one of their own, by name.
func (all *others) named() []*Series {
	all.mu.RLock()
	defer all.mu.RUnlock()
	list := make([]*Series, 0, len(all.known))
	for _, s := range all.known {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Series) int { return strings.Compare(a.name, b.name) })
	return list
}
