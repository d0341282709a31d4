//go:build amd64 || arm64

package pageagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// run runs an agent until stop is called, which returns its error.
func run(t *testing.T, o Options) (a *Agent, stop func() error) {
	t.Helper()
	st := memory.New()
	if o.Store == nil {
		o.Store = func(context.Context) (store.Store, error) { return st, nil }
	}
	if o.Lease == nil {
		o.Lease = func(ctx context.Context, st store.Store, _ string) (*lease.Lease, error) {
			return lease.Open(ctx, st, nil)
		}
	}
	o.Pool, o.Logger = "default", slog.New(slog.DiscardHandler)
	a = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(cancel)
	return a, func() error { cancel(); return <-done }
}

func get(t *testing.T, a *Agent, path string) (code int, text string) {
	t.Helper()
	h, err := a.Handler("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited too long for " + what)
		}
	}
}

// What HTTP says follows what clients get.
func TestWeb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	begin := make(chan struct{})
	a, stop := run(t, Options{Path: path, Lanes: 2, Lease: func(ctx context.Context, st store.Store, at string) (*lease.Lease, error) {
		<-begin
		if at != path {
			return nil, &lease.FullError{Pool: "default"}
		}
		return lease.Open(ctx, st, nil)
	}})
	if code, text := get(t, a, "/readyz"); code != 503 || !strings.HasPrefix(text, "it has no page since 20") {
		t.Errorf("before there is a page: %d %s", code, text)
	}
	if code, text := get(t, a, "/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("%d %s", code, text)
	}
	close(begin)
	p, err := page.Open(path, &page.OpenOptions{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Append(t.Context(), nil, 100); err != nil {
		t.Fatal(err)
	}
	await(t, "the count", func() bool {
		_, text := get(t, a, "/metrics")
		return strings.Contains(text, `firn_page_ids_total{lane="0",pool="default"} 100`)
	})
	if code, text := get(t, a, "/readyz"); code != 200 || !strings.HasPrefix(text, "ready, but lane 1: it has no page since 20") {
		t.Errorf("with one lane: %d %s", code, text)
	}
	_, text := get(t, a, "/metrics")
	for _, want := range []string{
		"firn_ready 1", "firn_page_lanes 2", `firn_pages_total{lane="0",pool="default"} 1`, `firn_pages_total{lane="1",pool="default"} 0`,
		`firn_page_worker{lane="0",pool="default"} 0`, `firn_page_left_seconds{lane="1",pool="default"} 0`, `firn_page_store_away{lane="0",pool="default"} 0`,
		`firn_build_info{version="v1.2.3"} 1`, `firn_page_renewals_total{lane="0"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	doc, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^firn_[a-z_]+`).FindAllString(text, -1) {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/reference/metrics.md does not explain %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`\bfirn_pages?_[a-z_]+`).FindAllString(string(doc), -1) {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("docs/reference/metrics.md explains %s, which there is not", name)
		}
	}
	if strings.Contains(text, `firn_page_worker{lane="1"`) {
		t.Error("a lane without a page has a worker")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Errors that may pass are waited for, and others end the agent; a file system that is full does so at the start only.
func TestErrors(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/x", Err: errors.New("no space")}
	for _, c := range []struct {
		err         error
		first, want bool
	}{
		{&lease.FullError{}, true, true},
		{&lease.MissingPoolError{}, true, false},
		{&lease.MissingPoolError{}, false, false},
		{&store.ForgotError{}, false, false},
		{&page.RestartError{}, false, true},
		{&page.UnusableError{}, false, false},
		{context.DeadlineExceeded, true, true},
		{firn.ErrClosed, false, true},
		{full, true, false},
		{full, false, true},
	} {
		if got := (&lane{}).again(c.err, c.first); got != c.want {
			t.Errorf("%T, first %t: tries again %t", c.err, c.first, got)
		}
	}
}

// An agent whose pool is missing ends, and so do its other lanes.
func TestEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	missing := &lease.MissingPoolError{Pool: "none"}
	a := New(Options{
		Path: path, Lanes: 3, Logger: slog.New(slog.DiscardHandler),
		Store: func(context.Context) (store.Store, error) { return memory.New(), nil },
		Lease: func(ctx context.Context, st store.Store, at string) (*lease.Lease, error) {
			if at == path+".1" {
				return nil, missing
			}
			return lease.Open(ctx, st, nil)
		},
	})
	if err := a.Run(t.Context()); !errors.Is(err, missing) {
		t.Errorf("%v", err)
	}
}

// A store that is away is waited for, and an agent that is stopped meanwhile ends without an error.
func TestStoreAway(t *testing.T) {
	tries := 0
	st := memory.New()
	o := Options{Path: filepath.Join(t.TempDir(), "page"), Store: func(context.Context) (store.Store, error) {
		if tries++; tries < 3 {
			return nil, errors.New("connection refused")
		}
		return st, nil
	}}
	a, stop := run(t, o)
	await(t, "the page", func() bool { s := a.State(); return s.Ready(time.Now()) == nil })
	if err := stop(); err != nil || tries != 3 {
		t.Error(err, tries)
	}
	o.Store = func(context.Context) (store.Store, error) { return nil, errors.New("connection refused") }
	_, stop = run(t, o)
	time.Sleep(100 * time.Millisecond)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// awayStore does not answer while away. When it is back, Durability is answered only after the lease got an answer of its own.
type awayStore struct {
	store.Store
	away, heard atomic.Bool
}

var errGone = errors.New("connection refused")

func (s *awayStore) Get(ctx context.Context, key string) (store.Record, error) {
	if s.away.Load() {
		return store.Record{}, errGone
	}
	s.heard.Store(true)
	return s.Store.Get(ctx, key)
}

func (s *awayStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if s.away.Load() {
		return store.Record{}, errGone
	}
	return s.Store.Put(ctx, key, value, cond)
}

func (s *awayStore) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if s.away.Load() {
		return nil, errGone
	}
	return s.Store.List(ctx, prefix)
}

func (s *awayStore) Durability(ctx context.Context) (store.Durability, error) {
	if s.away.Load() || !s.heard.Load() {
		return store.Durability{}, errGone
	}
	return s.Store.Durability(ctx)
}

// Once ids have ended, a lease that gets an answer may yet wait before it extends its grant. The agent does not wait for it.
func TestBackAfterOutage(t *testing.T) {
	st := &awayStore{Store: memory.New()}
	st.heard.Store(true)
	path := filepath.Join(t.TempDir(), "page")
	a, stop := run(t, Options{
		Path: path, Store: func(context.Context) (store.Store, error) { return st, nil },
		Lease: func(ctx context.Context, st store.Store, _ string) (*lease.Lease, error) {
			return lease.Open(ctx, st, &lease.Options{Outage: time.Second})
		},
	})
	p, err := page.Open(path, &page.OpenOptions{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.heard.Store(false)
	st.away.Store(true)
	time.Sleep(3 * time.Second)
	st.away.Store(false)
	await(t, "an answer to the lease", st.heard.Load)
	back := time.Now()
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("ids were back %s after the lease had an answer", time.Since(back))
	if n := a.State().Lanes[0].Pages; n != 2 {
		t.Errorf("%d pages, want that of another lease too", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
