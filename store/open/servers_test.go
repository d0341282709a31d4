package open_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

const durable, lossy = true, false

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

// servers are the stores with servers.
var servers = []struct {
	name    string
	start   func(testing.TB, ...string) *testserver.Server
	durable bool
}{
	{"zk", testserver.ZooKeeper, durable},
	{"postgres", testserver.Postgres, durable},
	{"etcd", testserver.Etcd, durable},
	{"mysql", testserver.MariaDB, durable},
	{"redis", testserver.Redis, lossy},
}

// add returns a URL with one more option.
func add(url, option string) string {
	if strings.Contains(url, "?") {
		return url + "&" + option
	}
	return url + "?" + option
}

func TestServers(t *testing.T) {
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			url := testserver.Shared(t, srv.start).URL()
			s, err := open.URL(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("open/%d", time.Now().UnixNano())
			if _, err := s.Init(t.Context()); err != nil {
				t.Error(err)
			}
			if made, err := s.Init(t.Context()); err != nil || made {
				t.Errorf("Init again: %t, %v", made, err)
			}
			r, err := s.Put(t.Context(), key, []byte(`1`), store.Condition{})
			if err != nil {
				t.Error(err)
			}
			if got, err := s.Get(t.Context(), key); err != nil || got.Version != r.Version {
				t.Errorf("%+v, %v", got, err)
			}
			if l, err := s.List(t.Context(), key); err != nil || len(l) != 1 {
				t.Errorf("%v, %v", l, err)
			}
			if p, err := s.Durability(t.Context()); err != nil || p.Durable != srv.durable {
				t.Errorf("%+v, %v", p, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(t.Context(), key); err == nil {
				t.Error("a closed store answers")
			}
			if err := goleak.Find(goleak.IgnoreCurrent()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestVouched(t *testing.T) {
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			url := testserver.Shared(t, srv.start).URL()
			for _, want := range []store.Durability{{Durable: true}, {}} {
				seen := store.Durability{Durable: srv.durable}
				s, err := open.URL(t.Context(), add(url, "assume="+want.String()))
				if err != nil {
					t.Fatal(err)
				}
				p, err := s.Durability(t.Context())
				if err != nil || p.Durable != want.Durable {
					t.Errorf("assume=%s: %+v, %v", want, p, err)
				}
				text := fmt.Sprintf("assume=%s in the URL", want)
				if want != seen {
					text = fmt.Sprintf("assume=%s in the URL: its operator ", want)
					if !strings.Contains(p.Why, "can be seen is "+seen.String()+": ") && !strings.Contains(p.Why, "can be seen, "+seen.String()+": ") {
						t.Errorf("it does not say what was seen: %s", p.Why)
					}
				}
				if !strings.Contains(p.Why, text) {
					t.Errorf("assume=%s: %s", want, p.Why)
				}
				s.Close()
			}
			if err := open.Check(add(url, "assume=perhaps")); err == nil || !strings.Contains(err.Error(), "assume is durable, lossy, or left out") {
				t.Error(err)
			}
		})
	}
}

// Where nobody answers, that is said within seconds: where the port is closed, and
// where the connection is taken and nothing comes back.
func TestWrongAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, srv := range servers {
		for what, addr := range map[string]string{"closed": closed.Addr().String(), "silent": l.Addr().String()} {
			t.Run(srv.name+" "+what, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				s, err := open.URL(t.Context(), srv.name+"://app:hunter2@"+addr+"/1")
				if err != nil {
					t.Fatal(err)
				}
				r, putErr := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
				_, getErr := s.Get(t.Context(), "k")
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("it took %s", took)
				}
				for _, err := range []error{getErr, putErr} {
					if err == nil || errors.Is(err, store.ErrConflict) || strings.Contains(err.Error(), "hunter2") {
						t.Errorf("%v", err)
					}
				}
				t.Logf("%s: %v; a Put that tried %q", time.Since(begun), getErr, r.Version)
				begun = time.Now()
				s.Close()
				if took := time.Since(begun); took > 20*time.Second {
					t.Errorf("Close took %s", took)
				}
			})
		}
	}
}
