package pageagent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/lease"
)

// A State says what an agent serves.
type State struct {
	Path  string
	Lanes []Lane
}

// A Lane is what an agent has in one lane. Counts are of all its pages.
type Lane struct {
	Path  string
	Lease *lease.State // nil: none is open
	Made  bool         // its page can be used
	Err   error        // why there is no page, as far as is known
	Since time.Time    // if Lease is nil: when the agent began to open one

	Taken, Renewals, Pages int64
}

// State returns what the agent serves now.
func (a *Agent) State() State {
	s := State{Path: a.options.Path}
	for _, l := range a.lanes {
		s.Lanes = append(s.Lanes, l.state())
	}
	return s
}

func (l *lane) state() Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Lane{
		Path: l.path, Made: l.made, Err: l.err, Since: l.since,
		Taken: l.stats.Taken.Load(), Renewals: l.stats.Renewals.Load(), Pages: l.stats.Pages.Load(),
	}
	if l.lease != nil {
		now := l.lease.State()
		s.Lease = &now
		if !s.Made && s.Err == nil {
			s.Err = now.Err
		}
	}
	return s
}

// Left returns for how long ids continue from now without the agent and its store.
func (l *Lane) Left(now time.Time) time.Duration {
	if l.Lease == nil || !l.Made {
		return 0
	}
	return l.Lease.Left(now.Add(-l.Lease.Offset))
}

// leastMargin is how long before the end of its ids a page is not ready any more, at least.
const leastMargin = time.Second

// Ready returns why the page of lane 0 gives no ids, or is about to end while the store is away. Nil means that clients get
// ids. The text names no store and no error of a driver: everybody who may ask may read it.
func (s *State) Ready(now time.Time) error {
	if why := s.Lanes[0].unready(now); why != "" {
		return errors.New(why)
	}
	return nil
}

// Lacking says which of the other lanes give no ids; empty where all do.
func (s *State) Lacking(now time.Time) string {
	var all []string
	for i := range s.Lanes[1:] {
		if why := s.Lanes[i+1].unready(now); why != "" {
			all = append(all, fmt.Sprintf("lane %d: %s", i+1, why))
		}
	}
	return strings.Join(all, "; ")
}

func (l *Lane) unready(now time.Time) string {
	left := l.Left(now)
	switch {
	case !l.Made:
		return "it has no page since " + l.Since.UTC().Format(time.RFC3339)
	case l.Lease == nil, left <= 0:
		return "its page has no ids"
	case l.Lease.StoreAway && left <= max(l.Lease.Budget/3, leastMargin):
		return fmt.Sprintf("the store does not answer, and ids end in %s", left.Round(time.Second))
	}
	return ""
}
