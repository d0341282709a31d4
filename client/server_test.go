package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// serve answers over the protocol until the test ends, and returns the address.
func serve(t *testing.T, srv *server.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, srv)
	return l.Addr().String()
}

func serveOn(t *testing.T, l net.Listener, srv *server.Server) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- resp.Serve(ctx, l, srv, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// flakes is a series of a lease.
func flakes(t *testing.T, st store.Store) *server.Series {
	t.Helper()
	ids, err := lease.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ids.Close() })
	return server.Numbers("photo", ids, &server.SeriesOptions{Layout: firn.Default()})
}

// numbers is a series of a sequence, which has ranges.
func numbers(t *testing.T, st store.Store, o *sequence.Options) *server.Series {
	t.Helper()
	if _, err := sequence.Create(t.Context(), st, "orders", o); err != nil && !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
	s, err := sequence.Open(t.Context(), st, "orders", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return server.Numbers("orders", s, &server.SeriesOptions{Reserve: s.Reserve})
}

func open(t *testing.T, url, series string, o *client.Options) *client.Client {
	t.Helper()
	var patient client.Options
	if o != nil {
		patient = *o
	}
	patient.Wait = time.Minute // the machine may have much else to do
	c, err := client.Open(t.Context(), url, series, &patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newServer(t *testing.T, o *server.Options, series ...*server.Series) *server.Server {
	t.Helper()
	srv, err := server.New(o, series...)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func TestFlakes(t *testing.T) {
	addr := serve(t, newServer(t, nil, flakes(t, memory.New())))
	c := open(t, "redis://"+addr, "photo", nil)
	var last firn.ID
	const n = 50_000
	for range n {
		id, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		parts, err := firn.Default().Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		// The clock of this process is the server's; a timer may be late on a busy machine.
		if age := time.Since(parts.Time); age > time.Second+30*time.Second {
			t.Fatalf("%d is %s old", id, age)
		}
		last = id
	}
	if s := c.State(); s.Server != addr || s.Err != nil || s.Fetched < n || s.Block < 100 || s.Rate == 0 {
		t.Errorf("%+v", s)
	}
}

// Several clients of a series share its numbers, each of which is given once, and
// little of them is lost.
func TestNumbers(t *testing.T) {
	addr := serve(t, newServer(t, nil, numbers(t, memory.New(), nil)))
	const clients, each = 3, 20_000
	var all []firn.ID
	var mu sync.Mutex
	var group sync.WaitGroup
	for range clients {
		c := open(t, "redis://"+addr, "orders", &client.Options{Prefetch: 500, MaxAge: -1})
		group.Go(func() {
			var ids []firn.ID
			var err error
			for len(ids) < each && err == nil {
				ids, err = c.Append(t.Context(), ids, 77)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ids...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d numbers were given twice", len(all)-n)
	}
	if first, last := all[0], all[len(all)-1]; first < 1 || int(last) > len(all)+clients*2*500+2*block.DefaultMaxUnused {
		t.Errorf("%d numbers are %d to %d", len(all), first, last)
	}
}

// A server that gives fewer at a time than the client would ask for says so, and is
// asked for as many as it gives.
func TestSmallBatches(t *testing.T) {
	addr := serve(t, newServer(t, &server.Options{MaxBatch: 30, MaxRange: 40}, flakes(t, memory.New()), numbers(t, memory.New(), nil)))
	for series, most := range map[string]int64{"photo": 30, "orders": 40} {
		c := open(t, "redis://"+addr, series, &client.Options{Prefetch: 100, MaxAge: -1, Timeout: time.Minute})
		if _, err := c.Append(t.Context(), nil, 500); err != nil {
			t.Fatal(err)
		}
		if s := c.State(); s.Failed > 0 || s.Fetched%most != 0 {
			t.Errorf("%s: %+v", series, s)
		}
	}
}

func TestTokens(t *testing.T) {
	token := func(name string, r server.Right) server.Token {
		return server.Token{Name: name, Hash: server.HashToken("s3cr3t-" + name), Rights: map[string]server.Right{"photo": r}}
	}
	addr := serve(t, newServer(t, &server.Options{Tokens: []server.Token{token("app", server.Issue), token("reader", server.Decode)}},
		flakes(t, memory.New())))
	if _, err := open(t, "redis://:s3cr3t-app@"+addr, "photo", nil).Next(t.Context()); err != nil {
		t.Error(err)
	}
	for url, code := range map[string]string{
		"redis://" + addr:                  "NOAUTH",
		"redis://:s3cr3t-else@" + addr:     "WRONGPASS",
		"redis://:s3cr3t-reader@" + addr:   "NOPERM",
		"redis://default:s3cr3t-r@" + addr: "WRONGPASS",
	} {
		_, err := client.Open(t.Context(), url, "photo", nil)
		var reply *client.Error
		if !errors.As(err, &reply) || reply.Code != code || firn.Retryable(err) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestNoSuchSeries(t *testing.T) {
	addr := serve(t, newServer(t, nil, flakes(t, memory.New())))
	_, err := client.Open(t.Context(), "redis://"+addr, "photos", nil)
	var reply *client.Error
	if !errors.As(err, &reply) || firn.Retryable(err) || !strings.Contains(reply.Text, "photo") {
		t.Errorf("got %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = client.Open(t.Context(), "redis://"+l.Addr().String(), "photo", &client.Options{Wait: time.Second})
	var outage *client.OutageError
	if !errors.As(err, &outage) || !firn.Retryable(err) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// What others are shown instead of ids is not for this client.
func TestPublicForm(t *testing.T) {
	ids, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	addr := serve(t, newServer(t, nil, server.Numbers("photo", ids, &server.SeriesOptions{Form: public.Base62})))
	_, err = client.Open(t.Context(), "redis://"+addr, "photo", nil)
	var strange *client.AnswerError
	if !errors.As(err, &strange) || !strings.Contains(err.Error(), "public form") || firn.Retryable(err) {
		t.Errorf("got %v", err)
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil) // for its certificate
	srv.StartTLS()
	defer srv.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: srv.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, newServer(t, nil, flakes(t, memory.New())))
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	url := "rediss://" + l.Addr().String()
	c := open(t, url, "photo", &client.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	if _, err := c.Append(t.Context(), nil, 1000); err != nil {
		t.Error(err)
	}
	// A certificate that nobody vouches for.
	_, err = client.Open(t.Context(), url, "photo", &client.Options{Wait: time.Minute})
	if err == nil || firn.Retryable(err) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	// A server that wants a certificate.
	l, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: srv.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, newServer(t, nil, flakes(t, memory.New())))
	_, err = client.Open(t.Context(), "rediss://"+l.Addr().String(), "photo", &client.Options{
		Wait: time.Minute, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	if err == nil || firn.Retryable(err) || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("got %v", err)
	}
	// A server that does not speak TLS.
	plain := serve(t, newServer(t, nil, flakes(t, memory.New())))
	if _, err = client.Open(t.Context(), "rediss://"+plain, "photo", &client.Options{Wait: time.Minute}); err == nil || firn.Retryable(err) {
		t.Errorf("got %v", err)
	}
}

// One of two servers ends under load, and comes back while the other ends, again and
// again: no call fails, and nothing repeats.
func TestServersComeAndGo(t *testing.T) {
	st := memory.New()
	var srvs [2]*server.Server
	var addrs [2]string
	for i := range srvs {
		srvs[i] = newServer(t, nil, flakes(t, st))
	}
	stop := make([]func(), 2)
	up := func(i int) {
		addr := addrs[i]
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = l.Addr().String()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- resp.Serve(ctx, l, srvs[i], nil) }()
		stop[i] = func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	up(0)
	up(1)
	c := open(t, "redis://"+addrs[0]+","+addrs[1], "photo", nil)
	var callers sync.WaitGroup
	over := make(chan struct{})
	found := make([][]firn.ID, 4)
	for i := range found {
		callers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				id, err := c.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				found[i] = append(found[i], id)
				if len(found[i])%100 == 0 {
					time.Sleep(time.Millisecond) // so many that they can be compared
				}
			}
		})
	}
	for i := range 6 {
		down := i % 2
		stop[down]()
		for before := c.State().Fetched; c.State().Fetched == before || c.State().Server == addrs[down]; {
			time.Sleep(time.Millisecond)
		}
		up(down)
	}
	close(over)
	callers.Wait()
	stop[0]()
	stop[1]()
	all := slices.Concat(found...)
	n := len(all)
	slices.Sort(all)
	if again := n - len(slices.Compact(all)); again > 0 {
		t.Errorf("%d of %d ids were given twice", again, n)
	}
	if s := c.State(); s.Failed < 5 { // but the first, if it was not asked
		t.Errorf("it failed %d times", s.Failed)
	}
}

// A client reaches a server at its socket, with and without a token.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "resp")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(&server.Options{Tokens: []server.Token{{
		Name: "shop", Hash: server.HashToken("the token"), Rights: map[string]server.Right{"*": server.Issue},
	}}}, flakes(t, memory.New()))
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, srv)
	ids := open(t, "unix://:the%20token@"+path, "photo", nil)
	if _, err := ids.Next(t.Context()); err != nil {
		t.Error(err)
	}
	if at := ids.State().Server; at != path {
		t.Errorf("the server is %q", at)
	}
	if c, err := client.Open(t.Context(), "unix:"+path, "photo", nil); err == nil || firn.Retryable(err) {
		t.Errorf("without the token: %v", err)
		if c != nil {
			c.Close()
		}
	}
}
