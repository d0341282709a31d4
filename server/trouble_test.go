package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
)

// Why a series fails is for the log and for those who may see its state. Everybody else is
// told what kind of trouble it is, since when, and whether to come again.
func TestCauseIsForAdmins(t *testing.T) {
	const cause = "dial tcp db.internal:5432: user=app: refused"
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	began := now
	var log bytes.Buffer
	src := &switched{err: errors.New(cause)}
	state := func() server.State {
		return server.State{StoreAway: true, Err: src.err, TroubleSince: began.Add(-time.Minute), EndsAt: now.Add(time.Second), Budget: time.Minute, Store: "postgres://app@db.internal"}
	}
	explain := func(error) server.Explanation {
		return server.Explanation{Again: true, Trouble: "the store does not answer", Hint: "look at db.internal"}
	}
	series := server.Numbers("photo", src, &server.SeriesOptions{Source: &server.Source{State: state}, Explain: explain})
	s := newServer(t, &server.Options{
		Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Tokens: []server.Token{
			{Name: "drawer", Hash: server.HashToken("d"), Rights: map[string]server.Right{"*": server.Issue | server.Decode}},
			{Name: "boss", Hash: server.HashToken("b"), Rights: map[string]server.Right{"photo": server.Issue | server.Admin}},
		},
	}, series)
	const public = "series photo: no ids since 2026-11-23T22:05:13Z: the store does not answer"
	for range 120 {
		for token, want := range map[string][2]string{
			"d": {public, "retry: ids resume by themselves when that is over"},
			"b": {public + ": " + cause, "look at db.internal"},
		} {
			x := enter(t, s, token)
			_, err := x.Next(t.Context(), "photo", nil, 1)
			if text, hint := x.Explain(err, nil); text != want[0] || hint != want[1] || err.Error() != public || !errors.Is(err, src.err) {
				t.Fatalf("%s: %q, hint %q, error %v", token, text, hint, err)
			}
		}
		now = now.Add(time.Second)
	}
	if n := strings.Count(log.String(), "db.internal:5432"); n != 2 {
		t.Errorf("the log says %d times in two minutes why:\n%s", n, &log)
	}
	ready := s.Ready()
	for _, tt := range []struct{ what, got, want string }{
		{"Ready", ready.Error(), "series photo: the store has not answered since 2026-11-23T22:04:13Z, and ids end in 1s"},
		{"Troubles", server.Troubles(ready), "at least one series is not ready: the store has not answered since 2026-11-23T22:04:13Z, and ids end in 1s"},
		{"Details", server.Details(ready), "series photo: the store has not answered since 2026-11-23T22:04:13Z, and ids end in 1s: " + cause},
		{"of a state", series.State().Trouble(now), "the store has not answered since 2026-11-23T22:04:13Z, and ids end in 1s"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, tt.got, tt.want)
		}
	}
}

// What an administrator is told of an outage says once since when there are no ids, and why.
func TestOutageIsSaidOnce(t *testing.T) {
	ended := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	src := &switched{err: &lease.OutageError{EndedAt: ended, AwaySince: ended.Add(-time.Minute), Err: errors.New("refused")}}
	x := enter(t, newServer(t, nil, server.Numbers("photo", src, nil)), "")
	_, err := x.Next(t.Context(), "photo", nil, 1)
	const want = "series photo: no ids since 2026-11-23T22:05:13Z: the store has not answered since 2026-11-23T22:04:13Z (refused)"
	if text, _ := x.Explain(err, nil); text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// An error says once since when there are no ids: since the trouble began, where that is known, and not
// since the first request that failed later.
func TestSinceIsSaidOnce(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	began := now.Add(-time.Minute)
	var log bytes.Buffer
	explain := func(error) server.Explanation {
		return server.Explanation{Again: true, Trouble: "still starting", Began: began}
	}
	x := enter(t, newServer(t, &server.Options{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		server.Numbers("photo", &switched{err: errors.New("refused")}, &server.SeriesOptions{Explain: explain})), "")
	for _, tt := range []struct{ began, want string }{
		{"before the first request", "series photo: no ids since 2026-11-23T22:04:13Z: still starting"},
		{"after it", "series photo: no ids since 2026-11-23T22:05:13Z: still starting"},
	} {
		if _, err := x.Next(t.Context(), "photo", nil, 1); err == nil || err.Error() != tt.want {
			t.Errorf("it began %s: %v, want %s", tt.began, err, tt.want)
		}
		began = now.Add(time.Minute)
	}
	if text := log.String(); strings.Count(text, " since=2026-11-23T22:04:13Z ") != 1 {
		t.Errorf("the log says another time: %s", text)
	}
}

// Ready says since when a series is not ready, also where its source does not know: since the server
// first saw that.
func TestReadySaysSinceWhen(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	state := server.State{Err: errors.New("gone")}
	gone := state.Err
	s := newServer(t, &server.Options{Now: func() time.Time { return now }}, server.Numbers("photo", nil, &server.SeriesOptions{
		Source: &server.Source{State: func() server.State { return state }},
	}))
	for _, tt := range []struct {
		err  error
		want string
	}{
		{gone, "series photo: it can issue nothing since 2026-11-23T22:05:13Z"},
		{gone, "series photo: it can issue nothing since 2026-11-23T22:05:13Z"},
		{nil, ""},
		{gone, "series photo: it can issue nothing since 2026-11-23T22:08:13Z"},
	} {
		state.Err = tt.err
		got := ""
		if err := s.Ready(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("at %s: %q, want %q", now, got, tt.want)
		}
		now = now.Add(time.Minute)
	}
}

// A request for more than is left is told how a client of its protocol asks for that. What else can
// be done is for those who may see the state.
func TestFewer(t *testing.T) {
	explain := func(error) server.Explanation {
		return server.Explanation{Trouble: "it has fewer numbers left than were asked for", Left: 3, Hint: "firn series create b"}
	}
	s := newServer(t, &server.Options{Tokens: []server.Token{
		{Name: "drawer", Hash: server.HashToken("d"), Rights: map[string]server.Right{"*": server.Issue}},
		{Name: "boss", Hash: server.HashToken("b"), Rights: map[string]server.Right{"*": server.Issue | server.Admin}},
	}}, server.Numbers("orders", &switched{err: errors.New("few")}, &server.SeriesOptions{Explain: explain}))
	ask := func(series string, n int64) string { return fmt.Sprintf("ASK %s %d", series, n) }
	for _, tt := range []struct {
		token string
		fewer func(string, int64) string
		want  string
	}{
		{"d", ask, "ASK orders 3"},
		{"d", nil, "ask for at most 3"},
		{"b", ask, "ASK orders 3; firn series create b"},
		{"b", nil, "ask for at most 3; firn series create b"},
	} {
		x := enter(t, s, tt.token)
		_, err := x.Next(t.Context(), "orders", nil, 5)
		if _, hint := x.Explain(err, tt.fewer); hint != tt.want {
			t.Errorf("%s: hint %q, want %q", tt.token, hint, tt.want)
		}
	}
}

// Trouble begins anew after ids were given.
func TestSince(t *testing.T) {
	now := time.Now()
	src := &switched{}
	x := enter(t, newServer(t, &server.Options{Now: func() time.Time { return now }}, server.Numbers("photo", src, nil)), "")
	var since []time.Time
	for _, fails := range []bool{true, true, false, true} {
		src.err = nil
		if fails {
			src.err = errors.New("away")
		}
		var e *server.SourceError
		if _, err := x.Next(t.Context(), "photo", nil, 1); errors.As(err, &e) != fails {
			t.Fatal(err)
		} else if fails {
			since = append(since, e.Since)
		}
		now = now.Add(time.Hour)
	}
	if len(since) != 3 || !since[0].Equal(since[1]) || since[2].Sub(since[0]) != 3*time.Hour {
		t.Error(since)
	}
}

// A switched source gives ids or fails.
type switched struct{ err error }

func (s *switched) Next(context.Context) (firn.ID, error) { panic("not asked") }
func (s *switched) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	if s.err != nil {
		return dst, s.err
	}
	for i := range n {
		dst = append(dst, firn.ID(i+1))
	}
	return dst, nil
}

// What states say to everybody has no cause in it, whatever they are.
func TestStatesTellNoCause(t *testing.T) {
	now := time.Now()
	for _, over := range []bool{false, true} {
		for _, degraded := range []bool{false, true} {
			for _, until := range []time.Time{{}, now, now.Add(time.Hour)} {
				for _, away := range []time.Time{{}, now} {
					st := server.State{Exhausted: over, StoreAway: degraded, EndsAt: until, TroubleSince: away, Err: errors.New("secret")}
					text := st.Trouble(now) + fmt.Sprint(st.Ready(now))
					if strings.Contains(text, "secret") || st.Trouble(now) == "" {
						t.Errorf("%+v: %q", st, text)
					}
				}
			}
		}
	}
}
