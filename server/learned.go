package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// learned are the series that Unknown has made.
type learned struct {
	mu     sync.RWMutex // of the map
	known  map[string]*Series
	large  chan struct{} // of all of them
	making sync.Mutex    // of a call of Unknown
}

// series returns the series of a name, which Unknown makes if need be, and adopt is
// given.
func (l *learned) series(ctx context.Context, name string, o *Options, adopt func(*Series)) (*Series, error) {
	if s := l.get(name); s != nil {
		return s, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	if s := l.get(name); s != nil {
		return s, nil
	}
	if n := len(l.known); n >= o.MaxUnknown {
		return nil, &LimitError{What: "number of names", Asked: int64(n) + 1, Max: int64(o.MaxUnknown)}
	}
	s, err := o.Unknown(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.name != name {
		return nil, fmt.Errorf("server: series %s was made for the name %s", s.name, name)
	}
	adopt(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known, l.large = map[string]*Series{}, s.large
	}
	s.large = l.large // however many names somebody makes up
	l.known[name] = s
	return s, nil
}

func (l *learned) get(name string) *Series {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.known[name]
}

// all returns the series by name.
func (l *learned) all() []*Series {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*Series, 0, len(l.known))
	for _, s := range l.known {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Series) int { return strings.Compare(a.name, b.name) })
	return all
}
