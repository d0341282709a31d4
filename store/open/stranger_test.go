package open_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// greeter is a server that says something to each connection, and then nothing more.
func greeter(t *testing.T, greeting string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			if _, err := c.Write([]byte(greeting)); err != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}

// Where another service listens at the address of a store, the error names the address, without the
// password, and says what to look at. It comes when the time of the call is over, or earlier.
func TestAnotherServiceListens(t *testing.T) {
	quiet := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(quiet.Close)
	web, cache, pg := quiet.Listener.Addr().String(), testserver.Shared(t, testserver.Redis).Addr(), testserver.Shared(t, testserver.Postgres).Addr()
	const notRedis, notPostgres, notMySQL = "is not Redis; check the host and the port", "is not PostgreSQL; check the host and the port", "is not MySQL; check the host and the port"
	for _, c := range []struct{ name, scheme, at, says string }{
		{"redis at HTTP", "redis", web, notRedis},
		{"redis at SSH", "redis", greeter(t, "SSH-2.0-OpenSSH_9.2\r\n"), notRedis},
		{"redis at PostgreSQL", "redis", pg, "is this the address of a Redis server?"},
		{"rediss at HTTP", "rediss", web, "does not speak TLS; check the host and the port"},
		{"rediss at Redis", "rediss", cache, "has not answered in time"},
		{"postgres at HTTP", "postgres", web, "Or is this the address of a PostgreSQL server?"},
		{"postgres at Redis", "postgres", cache, "Or is this the address of a PostgreSQL server?"},
		{"postgres at MySQL", "postgres", greeter(t, "J\x00\x00\x00\n8.0.36\x00"), notPostgres},
		{"mysql at HTTP", "mysql", web, "Or is this the address of a MySQL server?"},
		{"mysql at SSH", "mysql", greeter(t, "\x01\x00\x00\x05x"), notMySQL},
		{"etcd at HTTP", "etcd", web, "is the address right?"},
		{"etcd without a user at HTTP", "etcd ", web, "is this the address of another service?"},
		{"etcd without a user at Redis", "etcd ", cache, "is this the address of another service?"},
		{"zk at HTTP", "zk", web, "is the address right?"},
		{"zk at SSH", "zk", greeter(t, "SSH-2.0-OpenSSH_9.2\r\n"), "what answers is not ZooKeeper"},
		{"zk at PostgreSQL", "zk", pg, "is the address right?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			user := "app:hunter2@"
			if scheme, without := strings.CutSuffix(c.scheme, " "); without {
				c.scheme, user = scheme, ""
			}
			s, err := open.URL(t.Context(), c.scheme+"://"+user+c.at+"/1")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			calls := map[string]func(context.Context) error{
				"Get": func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
				"Put": func(ctx context.Context) error {
					_, err := s.Put(ctx, "k", []byte("1"), store.Condition{})
					return err
				},
			}
			if c.scheme == "postgres" || c.scheme == "mysql" { // there, Init asks the server
				calls["Init"] = func(ctx context.Context) error { _, err := s.Init(ctx); return err }
			}
			for call, do := range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				begun := time.Now()
				err := do(ctx)
				cancel()
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.at) ||
					strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "%!") || time.Since(begun) > 20*time.Second {
					t.Errorf("%s: after %s: %v\nwant %q and %s", call, time.Since(begun), err, c.says, c.at)
				}
			}
		})
	}
}
