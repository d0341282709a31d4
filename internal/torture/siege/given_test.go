//go:build linux

package siege

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// Servers that somebody started are besieged: all their records are the same after it, and
// what is new is what was said before and is reported. make full does it to PostgreSQL, and to a
// server that may lose what it acknowledged, too.
func TestGivenServer(t *testing.T) {
	for name, start := range map[string]struct {
		kind string
		url  func(*testing.T) string
	}{
		"postgres":    {"postgres", func(t *testing.T) string { return testserver.Postgres(t).URL() }},
		"redis":       {"redis", func(t *testing.T) string { return testserver.Redis(t).URL() + "?assume=durable" }},
		"redis-lossy": {"redis", func(t *testing.T) string { return testserver.Redis(t).URL() }},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "redis" {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			if err := testserver.Installed(start.kind); err != nil {
				t.Skipf("NOT TESTED: %v", err)
			}
			address := start.url(t)
			st := theirs(t, address)
			before := records(t, st)
			given, err := LookAt(t.Context(), address, "torture-of-a-test")
			if err != nil {
				t.Fatal(err)
			}
			if !given.Lossy != (name != "redis-lossy") {
				t.Errorf("lossy: %v", given.Lossy)
			}
			if text := strings.Join(given.Creates(6), "\n"); !strings.Contains(text, "ids of default") || !strings.Contains(text, given.Name) {
				t.Errorf("what is said before: %s", text)
			}
			o := Run(t.Context(), t, Options{Given: given, For: 10 * time.Minute, Faults: 6, Workers: 6, Seed: 3})
			for _, p := range o.Problems {
				t.Error(p)
			}
			if o.faults() < 6 || o.IDs < 1000 || o.Numbers == 0 && !given.Lossy {
				t.Errorf("%d ids and %d numbers, under %v", o.IDs, o.Numbers, o.Harms)
			}
			unchanged(t, before, records(t, st), o.Stays)
			// Those that ended gave their worker back; the worker of one that was killed falls free.
			eventually(t, "no worker is held", func() bool {
				workers, err := pool.Workers(t.Context(), st, given.Name)
				if err != nil {
					t.Fatal(err)
				}
				return !slices.ContainsFunc(workers, func(w pool.Worker) bool { return w.State == pool.WorkerHeld })
			})
			if _, err := LookAt(t.Context(), address, given.Name); err == nil || !strings.Contains(err.Error(), given.Name) {
				t.Errorf("a second one of the same name: %v", err)
			}
		})
	}
}

// theirs opens a store that somebody has used: with a pool of all workers, and a sequence.
func theirs(t *testing.T, address string) *open.Store {
	t.Helper()
	st := opened(t, address)
	if _, err := pool.Create(t.Context(), st, pool.Default, nil); err != nil {
		t.Fatal(err)
	}
	if d, err := st.Durability(t.Context()); err != nil {
		t.Fatal(err)
	} else if !d.Durable {
		return st
	}
	if _, err := sequence.Create(t.Context(), st, "orders", nil); err != nil {
		t.Fatal(err)
	}
	return st
}

func records(t *testing.T, st store.Store) []store.Record {
	t.Helper()
	all, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged compares the records of before, and the names of those that are new.
func unchanged(t *testing.T, before, after []store.Record, stays []string) {
	t.Helper()
	var fresh []string
	for _, r := range after {
		at := slices.IndexFunc(before, func(b store.Record) bool { return b.Key == r.Key })
		if at < 0 {
			fresh = append(fresh, r.Key)
		} else if string(before[at].Value) != string(r.Value) || before[at].Version != r.Version {
			t.Errorf("%s was %s and is %s", r.Key, before[at].Value, r.Value)
		}
	}
	if len(after) != len(before)+len(fresh) {
		t.Errorf("%d records were there, and of %d now %d are new", len(before), len(after), len(fresh))
	}
	slices.Sort(fresh)
	slices.Sort(stays)
	if len(fresh) < 2 || !slices.Equal(fresh, stays) {
		t.Errorf("what stays is said to be %q, and is %q", stays, fresh)
	}
}

// What there is of a name, and what has no server, is refused before anything is made.
func TestLookAtRefuses(t *testing.T) {
	if err := testserver.Installed("redis"); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	address := testserver.Redis(t).URL() + "?assume=durable"
	before := records(t, theirs(t, address))
	for _, tt := range []struct{ url, name, want string }{
		{address, pool.Default, "pool/default already; choose another name with -pool"},
		{address, "orders", "orders already; choose another name with -pool"},
		{"sqlite:/tmp/ids.db", "new", "-stores sqlite"},
		{"redis://127.0.0.1:1", "new", "connection refused"},
		{"mongodb://127.0.0.1", "new", "mongodb"},
	} {
		if _, err := LookAt(t.Context(), tt.url, tt.name); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v; it is to say %q", tt.name, tt.url, err, tt.want)
		}
	}
	if after := records(t, opened(t, address)); len(after) != len(before) {
		t.Errorf("%d records, and %d before", len(after), len(before))
	}
}

func opened(t *testing.T, address string) *open.Store {
	t.Helper()
	st, err := open.URL(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// A URL leads through a proxy before each host, and is the same in all else.
func TestThroughProxies(t *testing.T) {
	for _, tt := range []struct{ address, user, rest string }{
		{"postgres://app:a%40b@db.example/app?sslmode=require", "app:a%40b@", "/app?sslmode=require"},
		{"etcd://a,b:12379,[::1]:2379/firn", "", "/firn"},
		{"redis://cache", "", ""},
		{"zk://[::1]?x=1", "", "?x=1"},
	} {
		got, front, err := throughProxies(t, tt.address)
		if err != nil {
			t.Errorf("%s: %v", tt.address, err)
			continue
		}
		scheme, _, _ := strings.Cut(tt.address, ":")
		hosts := make([]string, len(front))
		for i := range front {
			hosts[i] = front[i].Addr()
		}
		if want := scheme + "://" + tt.user + strings.Join(hosts, ",") + tt.rest; got != want {
			t.Errorf("%s leads to %s, not to %s", tt.address, got, want)
		}
		if n := strings.Count(tt.address, ",") + 1; n != len(front) {
			t.Errorf("%s has %d hosts, and %d proxies", tt.address, n, len(front))
		}
	}
	if _, _, err := throughProxies(t, "postgres:///app?host=/run/postgresql"); err == nil {
		t.Error("a socket has no host, and there is no error")
	}
}
