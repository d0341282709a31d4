package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store/memory"
)

// flake opens a real lease and makes it a series.
func flake(t testing.TB, name string) *server.Series {
	t.Helper()
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return server.Numbers(name, l, &server.SeriesOptions{Layout: l.State().Layout})
}

// orders opens a real sequence and makes it a series of the server.
func orders(t testing.TB, name string) *server.Series {
	t.Helper()
	st := memory.New()
	if _, err := sequence.Create(t.Context(), st, name, nil); err != nil {
		t.Fatal(err)
	}
	s, err := sequence.Open(t.Context(), st, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return server.Numbers(name, s, &server.SeriesOptions{Reserve: s.Reserve})
}

func newServer(t testing.TB, o *server.Options, series ...*server.Series) *server.Server {
	t.Helper()
	s, err := server.New(o, series...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func enter(t testing.TB, s *server.Server, token string) *server.Session {
	t.Helper()
	x, err := s.Enter(token)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestNext(t *testing.T) {
	x := enter(t, newServer(t, nil, flake(t, "photo"), orders(t, "orders")), "")
	seen := map[firn.ID]bool{}
	for _, n := range []int{1, 10, 10_000} {
		values, err := x.Next(t.Context(), "photo", nil, n)
		if err != nil || len(values) != n {
			t.Fatalf("Next of %d: %d values, %v", n, len(values), err)
		}
		for _, v := range values {
			if v.ID <= 0 || v.Text != "" || seen[v.ID] {
				t.Fatalf("value %+v", v)
			}
			seen[v.ID] = true
		}
	}
	values, err := x.Next(t.Context(), "orders", nil, 3)
	if err != nil || fmt.Sprint(values) != "[{1 } {2 } {3 }]" {
		t.Fatalf("orders: %v, %v", values, err)
	}
	r, err := x.Reserve(t.Context(), "orders", 1000)
	if err != nil || r.Count != 1000 || r.Step != 1 || r.First < 4 {
		t.Fatalf("range %+v, %v", r, err)
	}
	if _, err := x.Reserve(t.Context(), "photo", 10); !errors.Is(err, server.ErrNoRange) {
		t.Fatalf("a range of a flake: %v", err)
	}
}

func TestLimits(t *testing.T) {
	x := enter(t, newServer(t, nil, flake(t, "photo"), orders(t, "orders")), "")
	for _, n := range []int{-1, 0, server.DefaultMaxBatch + 1} {
		var limit *server.LimitError
		if _, err := x.Next(t.Context(), "photo", nil, n); !errors.As(err, &limit) {
			t.Errorf("Next of %d: %v", n, err)
		}
	}
	for _, n := range []int{-1, 0, server.DefaultMaxRange + 1} {
		var limit *server.LimitError
		if _, err := x.Reserve(t.Context(), "orders", n); !errors.As(err, &limit) {
			t.Errorf("Reserve of %d: %v", n, err)
		}
	}
}

func TestNames(t *testing.T) {
	x := enter(t, newServer(t, nil, flake(t, "photo")), "")
	var none *server.NoSeriesError
	if _, err := x.Next(t.Context(), "phto", nil, 1); !errors.As(err, &none) || none.Nearest != "photo" {
		t.Errorf("phto: %v", err)
	}
	for _, name := range []string{"", "a b", "-a", strings.Repeat("a", 65), "é", "a\n"} {
		var bad *server.NameError
		if _, err := x.Next(t.Context(), name, nil, 1); !errors.As(err, &bad) {
			t.Errorf("name %q: %v", name, err)
		}
		if _, err := server.New(nil, server.Numbers(name, nil, nil)); !errors.As(err, &bad) {
			t.Errorf("New with name %q: %v", name, err)
		}
	}
	if _, err := server.New(nil, server.Numbers("a", nil, nil), server.Numbers("a", nil, nil)); err == nil {
		t.Error("two series of one name")
	}
}

func TestTokens(t *testing.T) {
	tokens := []server.Token{
		{Name: "web", Hash: server.HashToken("w"), Rights: map[string]server.Right{"photo": server.Issue, "*": server.Decode}},
		{Name: "ops", Hash: server.HashToken("o"), Rights: map[string]server.Right{"*": server.Admin | server.Issue, "orders": 0}},
	}
	s := newServer(t, &server.Options{Tokens: tokens}, flake(t, "photo"), orders(t, "orders"))
	if _, err := s.Enter("x"); !errors.Is(err, server.ErrToken) {
		t.Errorf("a token that is not known: %v", err)
	}
	web, ops, nobody := enter(t, s, "w"), enter(t, s, "o"), enter(t, s, "")
	for _, tt := range []struct {
		who    *server.Session
		series string
		want   error
	}{
		{web, "photo", nil},
		{web, "orders", server.ErrDenied},
		{web, "nosuch", server.ErrDenied}, // not even whether it is there
		{ops, "photo", nil},
		{ops, "orders", server.ErrDenied},
		{nobody, "photo", server.ErrNoToken},
	} {
		if _, err := tt.who.Next(t.Context(), tt.series, nil, 1); !errors.Is(err, tt.want) {
			t.Errorf("%q %s: %v, want %v", tt.who.Name(), tt.series, err, tt.want)
		}
	}
	if err := web.Can("*", server.Admin); !errors.Is(err, server.ErrDenied) {
		t.Errorf("web is admin: %v", err)
	}
	if err := ops.Can("*", server.Admin); err != nil {
		t.Errorf("ops: %v", err)
	}

	// A token that is taken away ends what its sessions may do.
	if err := s.Replace(&server.Options{Tokens: tokens[1:]}, flake(t, "photo")); err != nil {
		t.Fatal(err)
	}
	if _, err := web.Next(t.Context(), "photo", nil, 1); !errors.Is(err, server.ErrToken) {
		t.Errorf("a session of a token that is gone: %v", err)
	}
	if _, err := ops.Next(t.Context(), "photo", nil, 1); err != nil {
		t.Errorf("a session of a token that stayed: %v", err)
	}
}

// What was asked of a name is counted on, whoever made its series.
func TestCountsStay(t *testing.T) {
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := &server.Options{Others: func(name string) (*server.Series, error) { return server.Numbers(name, l, nil), nil }}
	s := newServer(t, o)
	x := enter(t, s, "")
	for i, given := range [][]*server.Series{nil, {server.Numbers("photo", l, nil)}, nil, nil} {
		if err := s.Replace(o, given...); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Next(t.Context(), "photo", nil, 3); err != nil {
			t.Fatal(err)
		}
		for _, one := range s.All() {
			if got := one.Counts().Values; got != uint64(3*i+3) {
				t.Errorf("%d times 3 values are counted as %d", i+1, got)
			}
		}
	}
}

func TestReady(t *testing.T) {
	now := time.Now()
	away := errors.New("gone")
	for _, tt := range []struct {
		state server.State
		ready bool
	}{
		{server.State{}, true},
		{server.State{Err: away}, false},
		{server.State{Err: away, Exhausted: true}, true},
		{server.State{StoreAway: true, Err: away, EndsAt: now.Add(101 * time.Second), Budget: 300 * time.Second}, true},
		{server.State{StoreAway: true, Err: away, EndsAt: now.Add(99 * time.Second), Budget: 300 * time.Second}, false},
		{server.State{StoreAway: true, EndsAt: now.Add(900 * time.Millisecond), Budget: 2 * time.Second}, false},
		{server.State{StoreAway: true, Err: away}, false},
		{server.State{StoreAway: true, Err: away, Counter: &server.Counter{Reserved: 1}}, true},
	} {
		s := newServer(t, &server.Options{Now: func() time.Time { return now }},
			server.Numbers("a", nil, nil), server.Numbers("b", nil, &server.SeriesOptions{Source: &server.Source{State: func() server.State { return tt.state }}}))
		if err := s.Ready(); (err == nil) != tt.ready {
			t.Errorf("%+v: %v", tt.state, err)
		}
	}
	s := newServer(t, nil)
	s.Stop()
	if err := s.Ready(); !errors.Is(err, server.ErrStopping) {
		t.Errorf("while stopping: %v", err)
	}
}

// TestAway: of several stores that do not answer, the longest silence and the first end count. A document
// that fails has no end, and the server is ready without it.
func TestAway(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 23, 22, 5, seconds, 0, time.UTC) }
	for want, states := range map[string][]server.State{
		"": {{}, {StoreAway: true, UnreadyAlone: true, TroubleSince: at(1)}},
		"the store has not answered since 2026-11-23T22:05:02Z": {{StoreAway: true, TroubleSince: at(2)}},
		"the store has not answered since 2026-11-23T22:05:03Z, and ids continue until 2026-11-23T22:05:50Z": {
			{StoreAway: true, TroubleSince: at(4), EndsAt: at(50)}, {}, {StoreAway: true, TroubleSince: at(3), EndsAt: at(55)}, {StoreAway: true, TroubleSince: at(5)},
		},
	} {
		var series []*server.Series
		for i, st := range states {
			series = append(series, server.Numbers(fmt.Sprint("s", i), nil, &server.SeriesOptions{Source: &server.Source{State: func() server.State { return st }}}))
		}
		if got := newServer(t, nil, series...).Away(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Before anybody has named a series, the store of all of them counts; and of many that
// cannot issue, none is forgotten.
func TestReadyNames(t *testing.T) {
	state := server.State{Err: errors.New("gone")}
	get := func() server.State { return state }
	now := time.Date(2026, 11, 23, 22, 5, 13, 0, time.UTC)
	clock := func() time.Time { return now }
	o := &server.Options{Now: clock, Others: func(name string) (*server.Series, error) {
		return server.Numbers(name, nil, &server.SeriesOptions{Source: &server.Source{State: get}}), nil
	}}
	s := newServer(t, o)
	if err := s.Ready(); err == nil || server.Details(err) != "any name: it can issue nothing since 2026-11-23T22:05:13Z: gone" {
		t.Errorf("without any series: %v", err)
	}
	var all []*server.Series
	for i := range 12 {
		all = append(all, server.Numbers(fmt.Sprintf("s%02d", i), nil, &server.SeriesOptions{Source: &server.Source{State: get}}))
	}
	s = newServer(t, &server.Options{Now: clock}, append(all, server.Numbers("well", nil, nil))...)
	if err := s.Ready(); err == nil || !strings.HasPrefix(err.Error(), "series s00, series s01, ") || !strings.HasSuffix(server.Details(err), "series s09 and 2 more: it can issue nothing since 2026-11-23T22:05:13Z: gone") {
		t.Errorf("many: %v", err)
	}
	state = server.State{}
	if err := errors.Join(s.Ready(), newServer(t, o).Ready()); err != nil {
		t.Error(err)
	}
}
