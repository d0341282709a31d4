package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

// Ready returns nil while every series can issue, and will for a while without its
// store; else an error that names those that cannot, and says in words that everybody may
// read what is wrong: [Details] has the causes, [Troubles] not even names. It turns before
// ids end: see [State.Ready]. A document that failed makes the server unready
// only where no series is ready: [Server.Lacking] names it where the server is ready.
func (s *Server) Ready() error {
	if s.stopping.Load() {
		return ErrStopping
	}
	if all, ready := s.unready(); !ready {
		return all.join()
	}
	return nil
}

// Lacking returns an error like that of Ready that names the series which are not ready although
// the server is; nil where there is none.
func (s *Server) Lacking() error {
	if all, ready := s.unready(); ready {
		return all.join()
	}
	return nil
}

// Away says since when a store does not answer although the server is ready, and until when ids continue
// without it; "" if each store answers. It names no series and no store, so everybody may read it.
func (s *Server) Away() string {
	w := s.now.Load()
	var since, until time.Time
	add := func(one *Series) {
		st := one.State()
		if !st.StoreAway || st.UnreadyAlone {
			return
		}
		if since.IsZero() || st.TroubleSince.Before(since) {
			since = st.TroubleSince
		}
		if until.IsZero() || st.EndsAt.Before(until) && !st.EndsAt.IsZero() {
			until = st.EndsAt
		}
	}
	if w.others.rest != nil {
		add(w.others.rest)
	}
	for _, name := range w.names {
		add(w.series[name])
	}
	switch {
	case since.IsZero():
		return ""
	case until.IsZero():
		return "the store has not answered since " + instant(since)
	}
	return "the store has not answered since " + instant(since) + ", and ids continue until " + instant(until)
}

// unready returns the series that are not ready, and whether the server is nevertheless.
func (s *Server) unready() (all unready, ready bool) {
	w := s.now.Load()
	now := w.options.Now()
	serves, fails := false, false // a series is ready; one fails that others could take over
	add := func(name string, one *Series) {
		err := one.ready(now)
		all.add(name, err)
		serves = serves || err == nil
		fails = fails || err != nil && !one.State().UnreadyAlone
	}
	if w.others.rest != nil { // all other names draw from the same
		add("any name", w.others.rest)
	}
	for _, name := range w.names {
		add("series "+name, w.series[name])
	}
	return all, !fails && (serves || len(all.reasons) == 0)
}

// unready are reasons, and what is not ready for each of them: many series of one
// pool say the same.
type unready struct {
	reasons []error
	names   map[string][]string
}

func (u *unready) add(name string, err error) {
	if err == nil {
		return
	}
	text := Details(err)
	if u.names == nil {
		u.names = map[string][]string{}
	}
	if u.names[text] == nil {
		u.reasons = append(u.reasons, err)
	}
	u.names[text] = append(u.names[text], name)
}

func (u *unready) join() error {
	const most = 10 // that are named
	errs := make([]error, len(u.reasons))
	for i, err := range u.reasons {
		names, more := u.names[Details(err)], ""
		if n := len(names) - most; n > 0 {
			names, more = names[:most], fmt.Sprintf(" and %d more", n)
		}
		errs[i] = &unreadySeries{strings.Join(names, ", ") + more, err}
	}
	return errors.Join(errs...)
}

// unreadySeries are series that are not ready for one reason.
type unreadySeries struct {
	names string
	err   error
}

func (e *unreadySeries) Error() string { return e.names + ": " + e.err.Error() }

func (e *unreadySeries) Unwrap() error { return e.err }

// Cures returns what can be done about an error of Ready, for those who run the server; "" if
// nothing is to be said.
func Cures(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return ""
	}
	var all []string
	for _, one := range joined.Unwrap() {
		var e *UnreadyError
		if errors.As(one, &e) && e.Hint != "" && !slices.Contains(all, e.Hint) {
			all = append(all, e.Hint)
		}
	}
	return strings.Join(all, "; ")
}

// Troubles returns what an error of Ready says, without the names of the series and without
// causes: for those who may know no more. It is of some of the series, and others may be ready.
func Troubles(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return phrase.Reason(err)
	}
	var all []string
	for _, one := range joined.Unwrap() {
		var e *UnreadyError
		if errors.As(one, &e) && !slices.Contains(all, e.Trouble) {
			all = append(all, e.Trouble)
		}
	}
	return "at least one series is not ready: " + strings.Join(all, "; ")
}
