package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
)

// Where it is known when ids start, it is said when to come again, and a source of which ids
// start later is not ready.
func TestStartsAt(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	starts := now.Add(5 * time.Minute)
	state := server.State{Err: errors.New("not yet"), TroubleSince: now, StartsAt: starts}
	src := &switched{err: errors.New("not yet")}
	explain := func(error) server.Explanation {
		return server.Explanation{Again: true, Trouble: "ids of its pool start at noon", StartsAt: starts}
	}
	s := newServer(t, &server.Options{Now: func() time.Time { return now }}, server.Numbers("photo", src, &server.SeriesOptions{
		Explain: explain, Source: &server.Source{State: func() server.State { return state }},
	}))
	_, err := enter(t, s, "").Next(t.Context(), "photo", nil, 1)
	if at := server.RetryAt(err); !at.Equal(starts) || server.Hint(err) != "retry at 2026-11-23T22:10:13Z: ids start by themselves then" {
		t.Errorf("%v: come again at %s; %s", err, at, server.Hint(err))
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{state.Err, "series photo: it can issue nothing since 2026-11-23T22:05:13Z; ids start at 2026-11-23T22:10:13Z"},
		{nil, "series photo: ids start at 2026-11-23T22:10:13Z"},
	} {
		state.Err = tt.err
		if err := s.Ready(); err == nil || err.Error() != tt.want || !server.RetryAt(err).Equal(starts) {
			t.Errorf("%v, to come again at %s; want %s", err, server.RetryAt(err), tt.want)
		}
	}
	now = starts.Add(-500 * time.Millisecond)
	if err := s.Ready(); err != nil {
		t.Errorf("half a second before ids start: %v", err)
	}
	if at := server.RetryAt(server.ErrStopping); !at.IsZero() {
		t.Error(at)
	}
}

// forGo is an error with what a Go program does next.
type forGo struct{}

func (forGo) Error() string  { return "lease: ids start at noon: set Options.Wait" }
func (forGo) Reason() string { return "lease: ids start at noon" }

// What the server tells, also those who may see everything, is not for Go programs.
func TestNoAdviceForGo(t *testing.T) {
	state := server.State{Err: fmt.Errorf("no ids: %w", forGo{})}
	s := newServer(t, nil, server.Numbers("photo", &switched{err: forGo{}}, &server.SeriesOptions{
		Source: &server.Source{State: func() server.State { return state }},
	}))
	x := enter(t, s, "")
	_, err := x.Next(t.Context(), "photo", nil, 1)
	text, _ := x.Explain(err, nil)
	shown, failed := json.Marshal(state)
	if failed != nil {
		t.Fatal(failed)
	}
	for what, text := range map[string]string{"Explain": text, "Details": server.Details(s.Ready()), "JSON": string(shown)} {
		if strings.Contains(text, "Options") || !strings.Contains(text, "ids start at noon") {
			t.Errorf("%s: %s", what, text)
		}
	}
}
