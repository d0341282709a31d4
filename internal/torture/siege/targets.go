//go:build linux

package siege

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/open"
)

// A target is a store that can be besieged.
type target struct {
	name  string
	needs func() error  // nil where its programs are installed
	lossy bool          // it forgets what it acknowledged
	ahead time.Duration // by how much at most a clock is set ahead; 0: it has a clock of its own, which tells
	start func(s *siege) *victim
}

// A victim is the store of a siege.
type victim struct {
	url    string // for an operator: not by way of the proxy
	harms  []harm
	losses []loss
	save   func() // makes the copy that it is put back to; nil: it never is

	// cut keeps all processes from it, and mend lets them in again.
	cut, mend func()

	// held reports whether somebody keeps all others from writing; nil: nobody can.
	held func() bool
}

// targets are all of them. The first are one server each, or none; the others are of
// several, or forget.
var targets = []target{
	{name: "sqlite", needs: nothing, ahead: time.Second, start: sqliteFile},
	{name: "postgres", needs: installed("postgres"), start: server(testserver.Postgres, "")},
	{name: "mysql", needs: installed("mariadb"), start: server(testserver.MariaDB, "")},
	// The test server has its data again after a kill, as it writes each command to
	// its disk first: an operator could vouch for it.
	{name: "redis", needs: installed("redis"), start: server(testserver.Redis, "assume=durable")},
	{name: "etcd", needs: installed("etcd"), ahead: 5 * time.Second, start: server(testserver.Etcd, "")},
	{name: "zookeeper", needs: installed("zookeeper"), ahead: 5 * time.Second, start: server(testserver.ZooKeeper, "")},

	{name: "etcd-cluster", needs: installed("etcd"), ahead: 5 * time.Second, start: cluster(testserver.EtcdCluster)},
	{name: "zookeeper-cluster", needs: installed("zookeeper"), ahead: 5 * time.Second, start: cluster(testserver.ZooKeeperCluster)},
	{name: "postgres-failover", needs: installed("postgres"), lossy: true, start: failingOver},
	{name: "redis-wiped", needs: installed("redis"), lossy: true, start: wiped},
}

// Stores returns the names of what can be besieged: the stores, and besides them those
// of several servers and those that forget.
func Stores() (stores, others []string) {
	for _, t := range targets {
		if t.lossy || strings.Contains(t.name, "-") {
			others = append(others, t.name)
		} else {
			stores = append(stores, t.name)
		}
	}
	return stores, others
}

// target is what is besieged.
func (o Options) target() target {
	switch at := placeOf(o.Store); {
	case o.Given != nil:
		return o.Given.target()
	case at >= 0:
		return targets[at]
	}
	return target{name: o.Store}
}

func placeOf(store string) int {
	return slices.IndexFunc(targets, func(t target) bool { return t.name == store })
}

// Installed returns nil if the programs of a store are installed.
func Installed(name string) error {
	return targets[placeOf(name)].needs()
}

func nothing() error { return nil }

func installed(kind string) func() error {
	return func() error { return testserver.Installed(kind) }
}

// through is the URL of a server by way of a proxy, with options.
func through(url, addr string, p *testserver.Proxy, options string) string {
	url = strings.Replace(url, addr, p.Addr(), 1)
	if options == "" {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&" + options
	}
	return url + "?" + options
}

// server is a store that is one server, behind a proxy.
func server(start func(testing.TB, ...string) *testserver.Server, options string) func(*siege) *victim {
	return func(s *siege) *victim {
		one := start(s.tb)
		proxy := testserver.NewProxy(s.tb, one.Addr())
		s.world.url = through(one.URL(), one.Addr(), proxy, options)
		direct := one.URL()
		if options != "" {
			direct += "?" + options
		}
		s.found(direct)
		v := &victim{url: direct, harms: slices.Concat(serverHarms(one, proxy), processHarms)}
		v.cut, v.mend = func() { proxy.Refuse(true); proxy.Cut() }, func() { proxy.Refuse(false) }
		var copied string
		putBackCopy := func(s *siege) {
			one.Kill(s.tb)
			one.PutBack(s.tb, copied)
			one.Start(s.tb)
		}
		v.losses = []loss{emptied(one.Start, one), recordRemoved, {name: "store put back", do: putBackCopy, silent: true}}
		if strings.HasPrefix(direct, "postgres") {
			v.losses = append(v.losses, dumpRestored)
		}
		v.save = func() {
			if strings.HasPrefix(direct, "postgres") {
				s.sql(setAside)
			}
			one.Stop(s.tb)
			copied = one.Copy(s.tb)
			one.Start(s.tb)
		}
		v.harms = append(v.harms, putBack(putBackCopy))
		return v
	}
}

// cluster is a store that is three servers.
func cluster(start func(testing.TB, int) *testserver.Cluster) func(*siege) *victim {
	return func(s *siege) *victim {
		c := start(s.tb, 3)
		s.world.url = c.URL()
		s.found(c.URL())
		return &victim{
			url: c.URL(), harms: slices.Concat(clusterHarms(c), processHarms), losses: []loss{emptied(c.Start, c.Members...), recordRemoved},
			cut: func() {}, mend: func() {},
		}
	}
}

// failingOver is a PostgreSQL primary that is lost, and a standby promoted that lacks
// its last writes.
func failingOver(s *siege) *victim {
	durability := "assume=lossy"
	if s.Broken == Vouched {
		durability = "assume=durable"
	}
	primary := testserver.Postgres(s.tb)
	proxy := testserver.NewProxy(s.tb, primary.Addr())
	s.world.url = through(primary.URL(), primary.Addr(), proxy, durability)
	s.found(s.world.url)
	return &victim{
		url: s.world.url, harms: append(slices.Clone(lossyProcessHarms), failover(primary, proxy)),
		losses: []loss{recordRemoved}, cut: func() {}, mend: func() {},
	}
}

// wiped is a Redis server that comes back with nothing of what it acknowledged.
func wiped(s *siege) *victim {
	one := testserver.Redis(s.tb)
	s.world.url = one.URL()
	s.found(one.URL())
	return &victim{
		url: one.URL(), harms: append(slices.Clone(lossyProcessHarms), killed(one, short), frozen(one, short)),
		losses: []loss{emptied(one.Start, one), recordRemoved}, cut: func() {}, mend: func() {},
	}
}

// found makes a pool and a series whose ids begin at once, as "firn pool create --new"
// and "firn series create" do.
func (s *siege) found(url string) {
	s.tb.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	st, err := open.URL(ctx, url)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer st.Close()
	o := &pool.Options{Workers: int64(s.places), Outage: budget}
	if s.Given != nil { // its ids are thrown away, so that no other pool has to make room
		o.MayRepeat = s.Given.pools
	}
	if _, err := pool.Create(ctx, st, s.pool, o); err != nil {
		s.tb.Fatal(err)
	}
	if s.target.lossy {
		return
	}
	if _, err := sequence.Create(ctx, st, s.series, &sequence.Options{New: true}); err != nil {
		s.tb.Fatal(err)
	}
}
