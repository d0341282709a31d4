package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/console"
	"github.com/firn-id/firn/store/memory"
)

// flakes are series of one real lease, whose state is what state makes of its worker.
func flakes(t *testing.T, state func(worker int64) server.State, names ...string) []*server.Series {
	t.Helper()
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	source := &server.Source{State: func() server.State { return state(l.State().Worker) }}
	var all []*server.Series
	for _, name := range names {
		all = append(all, server.Numbers(name, l, &server.SeriesOptions{Layout: l.State().Layout, Source: source}))
	}
	return all
}

func healthy(worker int64) server.State {
	durable := true
	return server.State{
		Kind: "flake", Store: "memory:", Durable: &durable, EndsAt: time.Now().Add(time.Minute), Budget: time.Minute,
		Lease: &server.Lease{Pool: "main", Layout: firn.MustLayout("twitter"), Workers: []int64{worker}},
	}
}

func newServer(t *testing.T, o *server.Options, series ...*server.Series) *server.Server {
	t.Helper()
	s, err := server.New(o, series...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks the console, with a token if there is one, and reads the JSON of its answer.
func get(t *testing.T, h http.Handler, path, token string, into any) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "bearer "+token) // the case of a scheme does not matter
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, w.Body)
		}
	}
	return w
}

type picture struct {
	Ready    bool
	Problems []string
	All      struct{ Requests, Values int }
	Series   []struct {
		Name   string
		Source int
		Values int
	}
	More    int
	Sources []struct {
		Name    string
		Series  int
		Ready   bool
		Workers []string
		State   struct {
			StoreAway bool    `json:"store_away"`
			Left      float64 `json:"left_seconds"`
		}
	}
	Stores []struct {
		URL     string
		Answers bool
	}
	Roster struct {
		Known   bool
		Problem string
		Workers []struct {
			Worker int64
			Text   string
			Ours   bool
			State  string
		}
		More int
	}
}

// The files of the page come with what keeps others out of it, and name nothing that
// is elsewhere.
func TestPage(t *testing.T) {
	h := console.Handler(newServer(t, nil), nil)
	away := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]+\.[a-z]|eval\(|innerHTML|style="`)
	err := fs.WalkDir(os.DirFS("page"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path := "/console/" + name
		if name == "index.html" {
			path = "/"
		}
		w := get(t, h, path, "", nil)
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d", path, w.Code)
		}
		if found := away.FindString(strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if !console.Serves(path) {
			t.Errorf("%s is not served", path)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer", "Content-Type": "; charset=utf-8",
		} {
			if got := w.Header().Get(header); !strings.Contains(got, want) && !strings.HasSuffix(name, ".svg") {
				t.Errorf("%s: %s is %q, want %q", path, header, got, want)
			}
		}
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("If-None-Match", w.Header().Get("ETag"))
		again := httptest.NewRecorder()
		if h.ServeHTTP(again, r); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: asked again: %d", path, again.Code)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if w := get(t, h, "/console/none", "", nil); w.Code != http.StatusNotFound {
		t.Errorf("what is not there: %d", w.Code)
	}
	if console.Serves("/v1/series") || console.Serves("/consoles") {
		t.Error("the console takes paths of others")
	}
}

// Where there are tokens, what the server says needs one with the right admin on "*".
func TestRights(t *testing.T) {
	token := func(name, series string, r server.Right) server.Token {
		return server.Token{Name: name, Hash: server.HashToken(name), Rights: map[string]server.Right{series: r}}
	}
	guarded := &server.Options{Tokens: []server.Token{
		token("ops", "*", server.Admin|server.Decode), token("metrics", "*", server.Admin),
		token("shop", "*", server.Issue|server.Decode), token("one", "photo", server.Admin),
	}}
	h := console.Handler(newServer(t, guarded, flakes(t, healthy, "photo")...), nil)
	for _, tt := range []struct {
		token         string
		state, decode int
	}{
		{"", 401, 401},
		{"wrong", 401, 401},
		{"shop", 403, 403},
		{"one", 403, 403},
		{"metrics", 200, 403},
		{"ops", 200, 200},
	} {
		for path, want := range map[string]int{"/console/state": tt.state, "/console/decode/250040881120281849": tt.decode} {
			w := get(t, h, path, tt.token, nil)
			if w.Code != want {
				t.Errorf("%q at %s: %d, want %d", tt.token, path, w.Code, want)
			}
			if w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s may be kept", path)
			}
			if want != 200 && strings.Contains(w.Body.String(), "photo") {
				t.Errorf("%q at %s: %s", tt.token, path, w.Body)
			}
		}
	}
}

// Series of one lease are one source; numbers are those of the series, and those of
// series that are not shown are in the sum.
func TestState(t *testing.T) {
	var names []string
	for i := range 203 {
		names = append(names, fmt.Sprintf("s%03d", i))
	}
	srv := newServer(t, nil, flakes(t, healthy, names...)...)
	session, err := srv.Enter("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s000", "s202"} {
		if _, err := session.Next(t.Context(), name, nil, 3); err != nil {
			t.Fatal(err)
		}
	}
	var got picture
	get(t, console.Handler(srv, nil), "/console/state", "", &got)
	if !got.Ready || len(got.Problems) != 0 || len(got.Series) != 200 || got.More != 3 || got.Series[0].Values != 3 || got.All.Values != 6 || got.All.Requests != 2 {
		t.Errorf("%+v", got)
	}
	if len(got.Sources) != 1 || got.Sources[0].Series != 203 || got.Sources[0].Name != "main" || got.Sources[0].State.Left < 50 || len(got.Stores) != 1 || !got.Stores[0].Answers {
		t.Errorf("%+v %+v", got.Sources, got.Stores)
	}
}

// A store that is away is seen at the source, at the store, and why in words.
func TestStateAway(t *testing.T) {
	state := func(worker int64) server.State {
		st := healthy(worker)
		st.StoreAway, st.Err, st.EndsAt = true, errors.New("connection refused"), time.Now().Add(10*time.Second)
		return st
	}
	var got picture
	get(t, console.Handler(newServer(t, nil, flakes(t, state, "photo")...), nil), "/console/state", "", &got)
	if got.Ready || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "connection refused") {
		t.Errorf("%+v", got)
	}
	if s := got.Sources[0]; s.Ready || !s.State.StoreAway || s.State.Left > 11 || s.State.Left < 5 || got.Stores[0].Answers {
		t.Errorf("%+v %+v", s, got.Stores)
	}
}

// The workers of the pool are asked for in the background and not at each look. A
// failure leaves the list as it was, and says why it is old.
func TestWorkers(t *testing.T) {
	var asked atomic.Int64
	release := make(chan struct{})
	ask := func(context.Context) ([]console.Worker, error) {
		asked.Add(1)
		<-release
		all := []console.Worker{{Store: "memory:", Pool: "main", Worker: 0, Text: "0/0", State: "held"}, {Store: "memory:", Pool: "other", Worker: 0, State: "held"}}
		for i := range 150 {
			all = append(all, console.Worker{Store: "memory:", Pool: "main", Worker: int64(i + 1), State: "free"})
		}
		return all, nil
	}
	h := console.Handler(newServer(t, nil, flakes(t, healthy, "photo")...), &console.Options{Workers: ask})
	for range 5 {
		var got picture
		if get(t, h, "/console/state", "", &got); got.Roster.Known {
			t.Fatal("workers are known before anybody said so")
		}
	}
	close(release)
	var got picture
	for end := time.Now().Add(time.Minute); !got.Roster.Known && time.Now().Before(end); time.Sleep(time.Millisecond) {
		get(t, h, "/console/state", "", &got)
	}
	for range 20 {
		get(t, h, "/console/state", "", &got)
		time.Sleep(time.Millisecond)
	}
	if n := asked.Load(); n > 5 { // one, on a machine that is not too busy
		t.Errorf("the store was asked %d times", n)
	}
	if w := got.Sources[0].Workers; len(w) != 1 || w[0] != "0/0" {
		t.Errorf("the card of the pool has workers %v", w)
	}
	all := got.Roster.Workers
	if len(all) != 100 || got.Roster.More != 52 || !all[0].Ours || all[0].Text != "0/0" || all[1].Ours || all[1].State != "held" || all[2].State != "free" {
		t.Errorf("%d and %d more: %+v", len(all), got.Roster.More, all)
	}
}

// Shards are asked for while somebody looks at them, as often as is said, and only by
// those who may see all. A server without any says so.
func TestShards(t *testing.T) {
	var asked atomic.Int64
	look := func(context.Context) (*console.Shards, error) {
		asked.Add(1)
		return &console.Shards{
			Servers: []console.ShardServer{{Name: "a", Shards: []console.Shard{{Number: 7, Bytes: 5, Rate: 1.5}, {Number: 9, Closed: true, Rate: -7}}}, {Name: "b", Err: errors.New("shard: server b: gone")}},
			Moves:   []console.ShardMove{{From: "a", To: "b", Shards: []int64{7}, List: "7", Phase: "copying", Lag: -1, Since: time.Now().Add(-time.Minute)}},
			Err:     errors.New("shard: server b: gone"),
		}, nil
	}
	there := false
	o := &console.Options{Every: time.Hour, Shards: func() func(context.Context) (*console.Shards, error) {
		if !there {
			return nil
		}
		return look
	}}
	ops := server.Token{Name: "ops", Hash: server.HashToken("ops"), Rights: map[string]server.Right{"*": server.Admin}}
	shop := server.Token{Name: "shop", Hash: server.HashToken("shop"), Rights: map[string]server.Right{"*": server.Issue | server.Decode}}
	h := console.Handler(newServer(t, &server.Options{Tokens: []server.Token{ops, shop}}), o)
	var state struct{ Shards bool }
	if get(t, h, "/console/state", "ops", &state); state.Shards {
		t.Error("there are shards before there are any")
	}
	if w := get(t, h, "/console/shards", "ops", nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "firn.yaml") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	there = true
	for token, want := range map[string]int{"": http.StatusUnauthorized, "shop": http.StatusForbidden} {
		if w := get(t, h, "/console/shards", token, nil); w.Code != want || strings.Contains(w.Body.String(), "servers") {
			t.Errorf("%q: %d %s", token, w.Code, w.Body)
		}
	}
	if asked.Load() != 0 {
		t.Error("servers are asked, and nobody looks who may")
	}
	var got struct {
		Known   bool
		Every   float64 `json:"every_seconds"`
		Missing string
		Servers []struct {
			Name, Problem string
			Shards        [][4]any
		}
		Moves []struct {
			List string
			For  float64 `json:"for_seconds"`
		}
	}
	for end := time.Now().Add(time.Minute); !got.Known && time.Now().Before(end); time.Sleep(time.Millisecond) {
		get(t, h, "/console/shards", "ops", &got)
	}
	if asked.Load() != 1 || got.Every != 3600 || len(got.Servers) != 2 || got.Missing != "server b: gone" || len(got.Moves) != 1 || got.Moves[0].For < 59 {
		t.Fatalf("asked %d times: %+v", asked.Load(), got)
	}
	if a := got.Servers[0].Shards; a[0] != [4]any{7.0, 5.0, 1.5, false} || a[1] != [4]any{9.0, 0.0, -1.0, true} || got.Servers[1].Problem != "server b: gone" {
		t.Errorf("%+v", got.Servers)
	}
}

// An id is taken apart bit by bit, and a text that is none is refused in words.
func TestDecode(t *testing.T) {
	h := console.Handler(newServer(t, nil, flakes(t, healthy, "photo")...), nil)
	var got struct {
		Readings []struct {
			ID, Bits, Layout, Time string
			Known                  bool
			Same                   string
			Fields                 []struct {
				Name         string
				Width, Shift int
				Value        string
			}
		}
	}
	const id = 250040881120281849
	get(t, h, fmt.Sprintf("/console/decode/%d", int64(id)), "", &got)
	if len(got.Readings) != 1 {
		t.Fatalf("%+v", got)
	}
	r := got.Readings[0]
	if !r.Known || r.Layout != "firn" || r.Bits != fmt.Sprintf("%064b", int64(id)) || r.Time == "" {
		t.Errorf("%+v", r)
	}
	at, sum := 63, int64(0)
	for _, f := range r.Fields {
		var v int64
		fmt.Sscan(f.Value, &v)
		sum |= v << f.Shift
		if f.Shift+f.Width != at {
			t.Errorf("field %s does not follow the one above it", f.Name)
		}
		at = f.Shift
	}
	if firn.ID(sum) != id || at != 0 {
		t.Errorf("the fields make %d, down to bit %d", sum, at)
	}
	got.Readings = nil
	get(t, h, "/console/decode/1541815603604639749", "", &got)
	for _, r := range got.Readings {
		if want := map[string]string{"twitter": "leaf (bwmarrin/snowflake): worker=37", "leaf": "twitter: datacenter=1 worker=5"}[r.Layout]; r.Same != want {
			t.Errorf("%s has the same bits as %q, want %q", r.Layout, r.Same, want)
		}
	}
	for _, text := range []string{"no-id", "0", strings.Repeat("1", 300)} {
		var why struct{ Detail string }
		if w := get(t, h, "/console/decode/"+text, "", &why); w.Code != http.StatusUnprocessableEntity || why.Detail == "" || strings.HasPrefix(why.Detail, "firn: ") {
			t.Errorf("%.10s: %d %s", text, w.Code, w.Body)
		}
	}
}
