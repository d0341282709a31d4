package redis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// A trouble is what happens to a server, and what a Put says then.
type trouble struct {
	name    string
	begin   func(t *testing.T, s *testserver.Server, admin *goredis.Client)
	end     func(t *testing.T, s *testserver.Server, admin *goredis.Client)
	says    string
	written bool // it may be: its outcome is unknown
	reads   bool // Get still works
}

func config(name, value string) func(*testing.T, *testserver.Server, *goredis.Client) {
	return func(t *testing.T, _ *testserver.Server, admin *goredis.Client) {
		do(t, admin, "CONFIG", "SET", name, value)
	}
}

func command(args ...any) func(*testing.T, *testserver.Server, *goredis.Client) {
	return func(t *testing.T, _ *testserver.Server, admin *goredis.Client) { do(t, admin, args...) }
}

var troubles = []trouble{
	{
		"stopped",
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Stop(t) },
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Start(t) },
		"cannot be reached", false, false,
	},
	{
		"killed",
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Kill(t) },
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Start(t) },
		"cannot be reached", false, false,
	},
	{
		"frozen",
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Freeze(t) },
		func(t *testing.T, s *testserver.Server, _ *goredis.Client) { s.Thaw(t) },
		"has not answered in time", true, false,
	},
	{"a replica", command("REPLICAOF", "127.0.0.1", "1"), command("REPLICAOF", "NO", "ONE"), "replica", false, false},
	{"memory full", config("maxmemory", "1"), config("maxmemory", "0"), "memory is full", false, true},
	{"replicas missing", config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0"), "min-replicas-to-write", false, true},
	{"disk full", failSave, config("save", ""), "cannot write to its disk", false, true},
	{"expires", command("PEXPIRE", DefaultKey, "600000"), command("PERSIST", DefaultKey), "the key expires", false, true},
	{"password set", func(t *testing.T, _ *testserver.Server, admin *goredis.Client) {
		do(t, admin, "CONFIG", "SET", "requirepass", "other")
		do(t, admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // those there are stay logged in
	}, config("requirepass", ""), "wants a password", false, false},
	{"users changed", command("ACL", "SETUSER", "default", "-eval"), command("ACL", "SETUSER", "default", "+eval"), "may not do that", false, false},
	{"busy", occupy, func(t *testing.T, _ *testserver.Server, admin *goredis.Client) {
		eventually(t, "SCRIPT KILL", func() bool { return admin.ScriptKill(t.Context()).Err() == nil })
	}, "somebody's script", false, false},
}

// failSave lets a snapshot fail, as it does when the disk is full: its name is
// taken by a directory.
func failSave(t *testing.T, _ *testserver.Server, admin *goredis.Client) {
	dir, err := admin.ConfigGet(t.Context(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir["dir"], "dump.rdb", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	do(t, admin, "CONFIG", "SET", "save", "3600 1000000")
	do(t, admin, "BGSAVE", "SCHEDULE")
	eventually(t, "the snapshot fails", func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
}

// occupy has a script run that does not end.
func occupy(t *testing.T, s *testserver.Server, admin *goredis.Client) {
	do(t, admin, "CONFIG", "SET", "busy-reply-threshold", "10")
	other := client(t, s.Addr())
	go other.Eval(context.WithoutCancel(t.Context()), "while true do end", nil)
	eventually(t, "the server is busy", func() bool {
		err := admin.Get(t.Context(), "x").Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
}

func TestTrouble(t *testing.T) {
	for _, tt := range troubles {
		t.Run(tt.name, func(t *testing.T) {
			server := testserver.Redis(t)
			admin := client(t, server.Addr())
			s := New(client(t, server.Addr()), nil)
			r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
			if err != nil {
				t.Fatal(err)
			}
			tt.begin(t, server, admin)
			short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			tried, err := s.Put(short, "k", []byte(`2`), store.Condition{Version: r.Version})
			if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Put: %v; it should say %q", err, tt.says)
			}
			t.Log(err)
			if (tried.Version != "") != tt.written {
				t.Errorf("Put returns Version %q", tried.Version)
			}
			got, err := s.Get(short, "k")
			switch {
			case tt.reads && (err != nil || got.Version != r.Version):
				t.Errorf("Get: %+v, %v", got, err)
			case !tt.reads && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("Get: %v; it should say %q", err, tt.says)
			}
			if _, err := s.List(short, ""); (err == nil) != tt.reads {
				t.Errorf("List: %v", err)
			}
			tt.end(t, server, admin)
			// What was tried may be carried out after it was read: each Put follows a Get.
			known := []store.Version{r.Version, tried.Version}
			eventually(t, "it can be read and written again", func() bool {
				got, err := s.Get(t.Context(), "k")
				if err != nil {
					return false
				}
				if got.Version == "" || !slices.Contains(known, got.Version) {
					t.Fatalf("the store has %+v", got)
				}
				last, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: got.Version})
				known = append(known, last.Version)
				return err == nil
			})
		})
	}
}

// TestReplica asks a server that replicates another. What it has may be old, so
// not even a conflict is true; and what is written there is lost, where it lets.
func TestReplica(t *testing.T) {
	server := testserver.Redis(t)
	admin := client(t, server.Addr())
	s := New(client(t, server.Addr()), nil)
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, admin, "REPLICAOF", "127.0.0.1", "1")
	for _, readOnly := range []string{"yes", "no"} {
		do(t, admin, "CONFIG", "SET", "replica-read-only", readOnly)
		for _, v := range []store.Version{r.Version, store.NewVersion(), ""} {
			got, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: v})
			if err == nil || !strings.Contains(err.Error(), "this server is a replica") || got.Version != "" {
				t.Errorf("replica-read-only %s: Put on %q: %+v, %v", readOnly, v, got, err)
			}
		}
	}
	do(t, admin, "REPLICAOF", "NO", "ONE")
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPoolInUse has others hold the client's only connection.
func TestPoolInUse(t *testing.T) {
	server := testserver.Redis(t)
	c := goredis.NewClient(&goredis.Options{Addr: server.Addr(), PoolSize: 1, PoolTimeout: 20 * time.Millisecond})
	defer c.Close()
	s := New(c, nil)
	held := c.Conn()
	if err := held.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err == nil || !strings.Contains(err.Error(), "raise its PoolSize") || r.Version != "" {
		t.Errorf("%+v, %v", r, err)
	}
	held.Close()
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Error(err)
	}
}

// TestSentOnce loses the reply of a Put, with clients at their defaults: they try
// three times and more.
func TestSentOnce(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, addr string) goredis.UniversalClient{
		"client": func(t *testing.T, addr string) goredis.UniversalClient { return client(t, addr) },
		"ring": func(t *testing.T, addr string) goredis.UniversalClient {
			c := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"one": addr}})
			t.Cleanup(func() { c.Close() })
			return c
		},
		"cluster": func(t *testing.T, addr string) goredis.UniversalClient {
			c := goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs: []string{addr},
				NewClient: func(o *goredis.Options) *goredis.Client {
					o.Addr = addr
					return goredis.NewClient(o)
				},
			})
			t.Cleanup(func() { c.Close() })
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			var server *testserver.Server
			if name == "cluster" {
				server = cluster(t)
			} else {
				server = testserver.Redis(t)
			}
			admin := client(t, server.Addr())
			p := testserver.NewProxy(t, server.Addr())
			s := New(connect(t, p.Addr()), nil)
			r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
			if err != nil {
				t.Fatal(err)
			}
			before := calls(t, admin)
			p.LoseReplies(1)
			tried, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			if err == nil || errors.Is(err, store.ErrConflict) || tried.Version == "" {
				t.Errorf("Put: %+v, %v", tried, err)
			}
			if n := calls(t, admin) - before; n != 1 {
				t.Errorf("the server has run it %d times", n)
			}
			if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != tried.Version {
				t.Errorf("tried %q; the store has %q, %v", tried.Version, got.Version, err)
			}
			p.LoseRequests(1)
			if _, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: tried.Version}); err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("Put: %v", err)
			}
			if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != tried.Version {
				t.Errorf("lost, and the store has %q, %v", got.Version, err)
			}
			// Each method is one command.
			before = calls(t, admin)
			for range 5 {
				s.Get(t.Context(), "k")
				s.List(t.Context(), "")
				s.Put(t.Context(), "k", nil, store.Condition{})
			}
			if n := calls(t, admin) - before; n != 15 {
				t.Errorf("15 calls are %d commands", n)
			}
		})
	}
}

// calls returns how many scripts the server has run.
func calls(t *testing.T, c *goredis.Client) (n int) {
	t.Helper()
	text := c.Info(t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(text, "cmdstat_eval:calls=")
	for _, b := range []byte(rest) {
		if b < '0' || b > '9' {
			break
		}
		n = 10*n + int(b-'0')
	}
	return n
}
