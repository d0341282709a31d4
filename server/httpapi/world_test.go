package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// flake is a series of ids of a real lease, with its state.
func flake(t testing.TB, st store.Store, name string, o *lease.Options) *server.Series {
	t.Helper()
	l, err := lease.Open(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return flakeOf(l, name)
}

func flakeOf(l *lease.Lease, name string) *server.Series {
	explain := func(err error) server.Explanation {
		var away *lease.OutageError
		return server.Explanation{Again: errors.As(err, &away), Trouble: "the store does not answer", Hint: "is the store there?"}
	}
	return server.Numbers(name, l, &server.SeriesOptions{Layout: l.State().Layout, Explain: explain, Source: &server.Source{State: func() server.State {
		st := l.State()
		return server.State{
			Kind: "flake", Durable: &st.Durable, Why: st.Why, EndsAt: st.EndsAt, Budget: st.Outage,
			Waits: st.Waits, UsedUpAt: st.Layout.End(), StoreAway: st.StoreAway, Err: st.Err,
			Lease: &server.Lease{
				Pool: st.Pool, Workers: []int64{st.Worker}, Term: st.Term, LeasedAt: st.LeasedAt, RenewedAt: st.RenewedAt,
				Ahead: st.Ahead, Borrowed: st.Borrowed,
			},
		}
	}}})
}

func photo(t testing.TB) *server.Series { t.Helper(); return flake(t, memory.New(), "photo", nil) }

// unknown makes a series of any name, all of one lease.
func unknown(t testing.TB) func(string) (*server.Series, error) {
	t.Helper()
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func(name string) (*server.Series, error) { return flakeOf(l, name), nil }
}

// orders is a series of real sequences, with its state.
func orders(t testing.TB, name string, o *sequence.Options) *server.Series {
	t.Helper()
	st := memory.New()
	if _, err := sequence.Create(t.Context(), st, name, o); err != nil {
		t.Fatal(err)
	}
	s, err := sequence.Open(t.Context(), st, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return ordersOf(s, name)
}

func ordersOf(s *sequence.Series, name string) *server.Series {
	return server.Numbers(name, s, &server.SeriesOptions{Reserve: s.Reserve, Source: &server.Source{State: func() server.State {
		st := s.State()
		return server.State{
			Kind: "sequence", Durable: &st.Durability.Durable, StoreAway: st.Degraded, Err: st.Err,
			Counter: &server.Counter{Next: int64(st.Granted) + 1, Last: int64(st.Max), Reserved: st.Left, Wasted: st.Wasted},
		}
	}}})
}

// invoices is a series of real documents.
func invoices(t testing.TB, name string) *server.Series {
	t.Helper()
	st := memory.New()
	const pattern = "INV-{6}"
	if _, err := document.Create(t.Context(), st, name, &document.Options{Pattern: pattern}); err != nil {
		t.Fatal(err)
	}
	s, err := document.Open(t.Context(), st, name, &document.Options{Pattern: pattern})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return server.Texts(name, s, nil)
}

// hidden is a series whose ids are numbers outside, too, but other ones.
func hidden(t testing.TB, name string) *server.Series {
	t.Helper()
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	key, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	form, err := public.NewCipher(name, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server.Numbers(name, l, &server.SeriesOptions{Form: form, Layout: l.State().Layout})
}

// ended is a series whose numbers are used up.
func ended(t testing.TB, name string) *server.Series {
	t.Helper()
	s := orders(t, name, &sequence.Options{Max: 3})
	if _, err := enter(t, newServer(t, nil, s), "").Next(t.Context(), name, nil, 3); err != nil {
		t.Fatal(err)
	}
	return s
}

// idless is a series of ids with a time that gives none, now or for ever.
func idless(name string, again bool) *server.Series {
	return server.Numbers(name, failing{}, &server.SeriesOptions{Explain: func(error) server.Explanation {
		return server.Explanation{Again: again, Trouble: "no id"}
	}})
}

// closed is a series whose source is being replaced: come again.
func closed(t testing.TB, name string) *server.Series {
	t.Helper()
	st := memory.New()
	if _, err := sequence.Create(t.Context(), st, name, nil); err != nil {
		t.Fatal(err)
	}
	s, err := sequence.Open(t.Context(), st, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return ordersOf(s, name)
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

// handler is all routes of a server.
func handler(t testing.TB, s *server.Server, o *httpapi.Options) http.Handler {
	t.Helper()
	h, err := httpapi.Handler(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// listen serves h on the loopback interface and returns its URL.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpapi.NewServer(h)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return "http://" + l.Addr().String()
}

// An answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, bytes.TrimSpace(a.body)) }

// ask sends a request. The headers are name, value, name, value.
func ask(t testing.TB, method, url string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return do(t, r)
}

func do(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// full is a template that has no room for another name.
func full(name string) *server.Series {
	return server.Texts(name, nil, &server.SeriesOptions{Names: func(_ context.Context, one string) (server.TextSource, error) {
		return nil, &document.FullError{Template: name, Name: one, Names: 2}
	}})
}
