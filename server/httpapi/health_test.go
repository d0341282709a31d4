package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// call asks a handler without a network.
func call(h http.Handler, method, path string, headers ...string) answer {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

// The store goes away behind a server that issues: /readyz says so before the first
// request fails, /healthz never does, failures say to come again, and all comes back
// by itself.
func TestStoreAway(t *testing.T) {
	const outage = 3 * time.Second
	st := storetest.NewFaulty(memory.New())
	l, err := lease.Open(t.Context(), st, &lease.Options{Outage: outage})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := handler(t, newServer(t, nil, flakeOf(l, "photo")), nil)
	next := func() answer { return call(h, "POST", "/v1/series/photo/next") }
	ready := func() answer { return call(h, "GET", "/readyz") }
	if a, b := next(), ready(); a.status != 200 || b.status != 200 {
		t.Fatal(a, b)
	}

	st.Away(errors.New("connection refused"))
	var unready, failed answer
	for deadline := time.Now().Add(time.Minute); failed.status == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("ids go on without end")
		}
		// In this order: what is not ready now cannot have been ready after a failure.
		if a := ready(); a.status != 200 && unready.status == 0 {
			unready = a
		}
		if a := next(); a.status != 200 {
			failed = a
		}
	}
	if unready.status != 503 || !strings.Contains(string(unready.body), "ids end in") || !strings.Contains(string(unready.body), "connection refused") {
		t.Errorf("not ready, before ids ended: %s", unready)
	}
	if failed.status != 503 || failed.header.Get("Retry-After") == "" || !strings.Contains(string(failed.body), "connection refused") || !strings.Contains(string(failed.body), "is the store there?") {
		t.Errorf("no ids: %s, %v", failed, failed.header)
	}
	if a, b := ready(), call(h, "GET", "/healthz"); a.status != 503 || b.status != 200 {
		t.Errorf("readyz %s, healthz %s", a, b)
	}

	st.Away(nil)
	for deadline := time.Now().Add(time.Minute); next().status != 200 || ready().status != 200; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the store is back: %s, %s", next(), ready())
		}
	}
}

// A document that fails makes only itself unready while another series works: /readyz names it. It
// makes a server of documents alone unready.
func TestReadyButForADocument(t *testing.T) {
	down := errors.New("connection refused")
	bad := &server.Source{State: func() server.State {
		return server.State{Kind: "document", UnreadyAlone: true, StoreAway: true, Err: down, Counter: &server.Counter{}}
	}}
	document := func(name string) *server.Series {
		return server.Numbers(name, failing{}, &server.SeriesOptions{Source: bad})
	}
	mixed := newServer(t, &server.Options{Tokens: tokens}, document("invoice"), flake(t, memory.New(), "photo", nil))
	h := handler(t, mixed, nil)
	for want, headers := range map[string][]string{
		"ready, but for series invoice: the store does not answer, and there are no numbers until it answers: connection refused\n": bearer(admin),
		"ready, but at least one series is not ready: the store does not answer, and there are no numbers until it answers\n":       nil,
	} {
		if got := call(h, "GET", "/readyz", headers...); got.status != 200 || string(got.body) != want {
			t.Errorf("%s, want 200 %s", got, want)
		}
	}
	all := scrape(t, h, bearer(admin)...)
	if value(t, all, "firn_ready", "") != 1 || value(t, all, "firn_series_ready", "invoice") != 0 || value(t, all, "firn_series_ready", "photo") != 1 {
		t.Errorf("%v %v", all["firn_ready"], all["firn_series_ready"])
	}
	for _, s := range []*server.Server{
		newServer(t, nil, document("invoice"), document("receipt")),
		newServer(t, nil, document("invoice"), photo(t), ended(t, "ended")),
	} {
		got := call(handler(t, s, nil), "GET", "/readyz")
		if got.status != 503 || !strings.Contains(string(got.body), "series invoice") {
			t.Errorf("%s", got)
		}
	}
}

// Why a server is not ready is for those who have the right admin.
func TestReadySaysWhy(t *testing.T) {
	s := newServer(t, &server.Options{Tokens: tokens}, ended(t, "ended"), flake(t, memory.New(), "photo", nil))
	h := handler(t, s, nil)
	a, err := httpapi.Admin(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		h       http.Handler
		headers []string
		says    bool
	}{
		{h, nil, false},
		{h, bearer(issuer), false},
		{h, bearer("nobody's"), false},
		{h, bearer(admin), true},
		{a, nil, true},
	} {
		got := call(tt.h, "GET", "/readyz", tt.headers...)
		if got.status != 503 || strings.Contains(string(got.body), "ended") != tt.says {
			t.Errorf("with %v: %s", tt.headers, got)
		}
		if got := string(got.body); strings.Contains(got, "at least one series is not ready") == tt.says || strings.Contains(got, "photo") {
			t.Errorf("with %v, of a server with a series that is ready: %s", tt.headers, got)
		}
	}
	if got := call(h, "GET", "/healthz"); got.status != 200 {
		t.Errorf("healthz: %s", got)
	}
	s.Stop()
	if got := call(a, "GET", "/readyz"); !strings.Contains(string(got.body), "stopping") {
		t.Errorf("stopping: %s", got)
	}
}

// Retry-After says when to come again, where that is known.
func TestRetryAfter(t *testing.T) {
	var starts time.Time
	explain := func(error) server.Explanation {
		return server.Explanation{Again: true, Trouble: "not yet", StartsAt: starts}
	}
	source := &server.Source{State: func() server.State { return server.State{Err: errors.New("not yet"), StartsAt: starts} }}
	h := handler(t, newServer(t, nil, server.Numbers("photo", failing{}, &server.SeriesOptions{Explain: explain, Source: source})), nil)
	for _, tt := range []struct {
		in          time.Duration
		least, most int
	}{{0, 1, 1}, {-time.Minute, 1, 1}, {5 * time.Minute, 290, 300}, {90 * time.Minute, 5390, 5400}} {
		starts = time.Time{}
		if tt.in != 0 {
			starts = time.Now().Add(tt.in)
		}
		for method, path := range map[string]string{"POST": "/v1/series/photo/next", "GET": "/readyz"} {
			got := call(h, method, path)
			after, err := strconv.Atoi(got.header.Get("Retry-After"))
			if got.status != 503 || err != nil || after < tt.least || after > tt.most {
				t.Errorf("%s where ids start in %s: %d, Retry-After %q", path, tt.in, got.status, got.header.Get("Retry-After"))
			}
		}
	}
}

// failing is a source that gives nothing.
type failing struct{}

func (failing) Next(context.Context) (firn.ID, error) { return 0, errors.New("not yet") }

func (failing) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	return dst, errors.New("not yet")
}
