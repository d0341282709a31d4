package redis

import (
	"net"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/advice"
)

func TestDurability(t *testing.T) {
	server := testserver.Redis(t)
	admin := client(t, server.Addr())
	s := New(client(t, server.Addr()), nil)
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		set, back []any
		why, err  string
	}{
		{nil, nil, "appendfsync always", ""},
		{[]any{"CONFIG", "SET", "appendfsync", "everysec"}, nil, "appendfsync everysec", ""},
		{[]any{"CONFIG", "SET", "appendfsync", "no"}, nil, "appendfsync no", ""},
		{[]any{"CONFIG", "SET", "appendonly", "no"}, nil, "appendonly no", ""},
		{[]any{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, nil, "maxmemory-policy allkeys-lru", ""},
		{[]any{"CONFIG", "SET", "maxmemory", "100mb"}, []any{"CONFIG", "SET", "maxmemory", "0"}, "", "drops any key"},
		{[]any{"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}, nil, "maxmemory-policy volatile-lru", ""},
		{[]any{"PEXPIRE", DefaultKey, "600000"}, []any{"PERSIST", DefaultKey}, "", "the key expires"},
		{[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, "", "connect to its master 127.0.0.1:1"},
		{[]any{"ACL", "SETUSER", "default", "-config"}, nil, "maxmemory-policy volatile-lru", ""},
	} {
		if tt.set != nil {
			do(t, admin, tt.set...)
		}
		p, err := s.Durability(t.Context())
		switch {
		case tt.err == "" && (err != nil || p.Durable || !strings.Contains(p.Why, tt.why) || p.Instance == ""):
			t.Errorf("%v: %+v, %v; it should say %q", tt.set, p, err, tt.why)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%v: %+v, %v; it should say %q", tt.set, p, err, tt.err)
		}
		if tt.back != nil {
			do(t, admin, tt.back...)
		}
	}
	before, _ := s.Durability(t.Context())
	server.Kill(t)
	server.Start(t)
	var after store.Durability
	eventually(t, "it is back", func() (ok bool) {
		var err error
		after, err = s.Durability(t.Context())
		return err == nil
	})
	if before.Instance == after.Instance {
		t.Errorf("after a restart it is still %q", after.Instance)
	}
}

// TestDurabilityOfReplicas has a replica, and a master that goes on without it or not.
func TestDurabilityOfReplicas(t *testing.T) {
	master, replica := testserver.Redis(t), testserver.Redis(t)
	admin := client(t, master.Addr())
	host, port, _ := net.SplitHostPort(master.Addr())
	do(t, client(t, replica.Addr()), "REPLICAOF", host, port)
	s := New(client(t, master.Addr()), nil)
	const goesOn = "min-replicas-to-write is not set"
	eventually(t, "the durability names the replica", func() bool {
		p, err := s.Durability(t.Context())
		return err == nil && strings.Contains(p.Why, "1 replicas") && strings.Contains(p.Why, goesOn)
	})
	do(t, admin, "CONFIG", "SET", "min-replicas-to-write", "1")
	if p, err := s.Durability(t.Context()); err != nil || strings.Contains(p.Why, goesOn) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestRing has a ring of two servers: without the one that has the key it would go
// on with the other.
func TestRing(t *testing.T) {
	one, two := testserver.Redis(t), testserver.Redis(t)
	c := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"one": one.Addr(), "two": two.Addr()}})
	defer c.Close()
	s := New(c, nil)
	r, put := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	if r.Version != "" {
		t.Errorf("%+v was written", r)
	}
	_, get := s.Get(t.Context(), "k")
	_, list := s.List(t.Context(), "")
	_, durability := s.Durability(t.Context())
	for _, err := range []error{put, get, list, durability} {
		if err == nil || !strings.Contains(err.Error(), "a ring of several servers") {
			t.Error(err)
		}
	}
}

// TestPrivileges takes each of the commands that are documented away.
func TestPrivileges(t *testing.T) {
	server := testserver.Redis(t)
	admin := client(t, server.Addr())
	documented := []string{"eval", "hget", "hset", "hscan", "pttl", "time", "info", "config|get"}
	setup := func(without string) *Store {
		args := []any{"ACL", "SETUSER", "firn", "reset", "on", ">secret", "~firn", "resetchannels", "-@all"}
		for _, name := range documented {
			if name != without {
				args = append(args, "+"+name)
			}
		}
		do(t, admin, args...)
		c := goredis.NewClient(&goredis.Options{Addr: server.Addr(), Username: "firn", Password: "secret"})
		t.Cleanup(func() { c.Close() })
		return New(c, nil)
	}
	all := func(s *Store) (errs []error) {
		r, err := s.Get(t.Context(), "k")
		errs = append(errs, err)
		_, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{Version: r.Version})
		errs = append(errs, err)
		_, err = s.List(t.Context(), "")
		errs = append(errs, err)
		p, err := s.Durability(t.Context())
		if err == nil && strings.Contains(p.Why, "could not be seen") {
			err = &advice.Error{Err: store.ErrConflict}
		}
		return append(errs, err)
	}
	s := setup("")
	for i, err := range all(s) {
		if err != nil {
			t.Errorf("with all that is documented, call %d: %v", i, err)
		}
	}
	for _, args := range [][]any{{"DEL", "firn"}, {"HDEL", "firn", "k"}, {"HGET", "other", "k"}, {"EXPIRE", "firn", 1}, {"CONFIG", "SET", "save", ""}} {
		if err := s.client.Do(t.Context(), args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, name := range documented {
		failed := false
		for _, err := range all(setup(name)) {
			failed = failed || err != nil
		}
		if !failed {
			t.Errorf("nothing needs %s", name)
		}
	}
}

// TestPrivilegesOfCluster has what a client needs that finds its way.
func TestPrivilegesOfCluster(t *testing.T) {
	server := cluster(t)
	do(t, client(t, server.Addr()), "ACL", "SETUSER", "firn", "on", ">secret", "~firn", "resetchannels", "-@all",
		"+eval", "+hget", "+hset", "+hscan", "+pttl", "+time", "+info", "+config|get", "+cluster|slots")
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{server.Addr()}, Username: "firn", Password: "secret"})
	defer c.Close()
	s := New(c, nil)
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Error(err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	if p, err := s.Durability(t.Context()); err != nil || !strings.Contains(p.Why, "appendfsync always") {
		t.Errorf("%+v, %v", p, err)
	}
}
