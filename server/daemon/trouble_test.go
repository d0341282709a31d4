package daemon

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/lease"
)

// A client is told when the ids of a pool start, also by a server that is not open yet and by one
// whose lease says so, and nobody is told an option of a Go program.
func TestTroubleOfALaterStart(t *testing.T) {
	t.Parallel()
	early := &lease.NotYetError{Pool: "web", StartsAt: time.Date(2026, 11, 23, 22, 10, 13, 0, time.UTC)}
	d := &outlet{Series: &config.Series{Kind: config.Flake, Leasing: &config.Leasing{Pool: "web"}}}
	began := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	for _, err := range []error{early, &waitsError{early}, &notOpenError{early, began}, &notOpenError{&waitsError{early}, began}} {
		e := d.judge(err)
		if !e.Again || !e.StartsAt.Equal(early.StartsAt) || !strings.Contains(e.Trouble, "start at 2026-11-23T22:10:13Z") {
			t.Errorf("%v: %+v", err, e)
		}
		if strings.Contains(e.Trouble, "since") { // the error of the series says it
			t.Errorf("%v: %s", err, e.Trouble)
		}
		if opening := new(notOpenError); errors.As(err, &opening) && !e.Began.Equal(began) {
			t.Errorf("%v: it began at %s", err, e.Began)
		}
		if text := phrase.Reason(err); strings.Contains(text, "Options") || !strings.Contains(text, "2026-11-23T22:10:13Z") {
			t.Errorf("%T: %s", err, text)
		}
	}
	s := newSupply(d, slog.New(slog.DiscardHandler))
	var err error = early
	s.trouble.Store(&err)
	if st := s.state(); !st.StartsAt.Equal(early.StartsAt) {
		t.Errorf("%+v", st)
	}
}

// A flake that gives nothing because its pool is not open says since when it is being opened.
func TestWithheldSince(t *testing.T) {
	t.Parallel()
	s := newSupply(&outlet{Series: &config.Series{Kind: config.Flake, Leasing: &config.Leasing{Pool: "web"}}}, slog.New(slog.DiscardHandler))
	err := error(&lease.AwayError{Wait: time.Second, Err: errors.New("refused")})
	s.trouble.Store(&err)
	if st := (withheldSupply{s, errUnheard}).state(); !st.TroubleSince.Equal(s.began) {
		t.Errorf("since %s, want %s", st.TroubleSince, s.began)
	}
}

// A document whose store does not answer has not been answered since the first of the calls that failed
// in a row.
func TestHeard(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	down := errors.New("refused")
	h := new(heard)
	for i, tt := range []struct {
		err   error
		since time.Time
	}{{nil, time.Time{}}, {down, at.Add(time.Second)}, {down, at.Add(time.Second)}, {nil, time.Time{}}, {down, at.Add(4 * time.Second)}} {
		if h = h.after(at.Add(time.Duration(i)*time.Second), tt.err); h.err != tt.err || !h.since.Equal(tt.since) {
			t.Errorf("call %d: %+v, want %+v", i, h, tt)
		}
	}
}

// A server that starts is not ready before it has heard of each document. One that failed then is
// alone with that: the server is ready for the others.
func TestReadinessWaitsForDocuments(t *testing.T) {
	t.Parallel()
	s := newSupply(&outlet{Series: &config.Series{Kind: config.Document}}, slog.New(slog.DiscardHandler))
	if st := s.state(); st.UnreadyAlone || st.Ready(time.Now()) == nil {
		t.Errorf("not heard yet: %+v", st)
	}
	err := errors.New("nothing listens at the address")
	s.trouble.Store(&err)
	if st := s.state(); !st.UnreadyAlone || st.Ready(time.Now()) == nil {
		t.Errorf("failed: %+v", st)
	}
}
