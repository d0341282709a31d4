package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// A backend is a kind of store.
type backend struct {
	name   string
	server func(testing.TB, ...string) *testserver.Server // nil: a file
	args   []string                                       // so that it keeps what it has shown to anybody when it is killed
	lossy  bool
}

var backends = []backend{
	{name: "sqlite"},
	{name: "postgres", server: testserver.Postgres},
	{name: "mysql", server: testserver.MariaDB, args: binlog},
	{name: "etcd", server: testserver.Etcd},
	{name: "zookeeper", server: testserver.ZooKeeper},
	{name: "redis", server: testserver.Redis, args: []string{"--appendonly", "yes", "--appendfsync", "always"}, lossy: true},
}

// binlog has MariaDB write to its disk before others can read what was written.
var binlog = []string{"--log-bin=log", "--sync-binlog=1"}

// connect returns a connection of its own, as another process has it.
func connect(t *testing.T, url string) store.Store {
	t.Helper()
	st, err := open.URL(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// numbers are what was issued, as one who reads all of them sees it.
type numbers struct {
	mu      sync.Mutex
	seen    map[firn.ID]bool
	repeats []firn.ID
	errs    map[string]int
	slowest time.Duration // call
	forgot  int           // calls that failed because the store has forgotten
}

func newNumbers() *numbers { return &numbers{seen: map[firn.ID]bool{}, errs: map[string]int{}} }

func (n *numbers) add(took time.Duration, ids []firn.ID, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ids {
		if n.seen[id] {
			n.repeats = append(n.repeats, id)
		}
		n.seen[id] = true
	}
	n.slowest = max(n.slowest, took)
	if err != nil {
		n.errs[fmt.Sprintf("%T %.300s", err, err)]++
		if errors.As(err, new(*store.ForgotError)) {
			n.forgot++
		}
	}
}

func (n *numbers) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.seen)
}

// mixed draws in one of the ways there are, by i.
func mixed(ctx context.Context, s *sequence.Series, i int) ([]firn.ID, error) {
	switch i % 5 {
	case 0:
		r, err := s.Reserve(ctx, 1+i%40)
		return slices.Collect(r.All()), err
	case 1:
		return s.Append(ctx, nil, 1+i%20)
	}
	id, err := s.Next(ctx)
	if err != nil {
		return nil, err
	}
	return []firn.ID{id}, nil
}

// drawMixed draws from several goroutines until done is closed.
func (n *numbers) drawMixed(s *sequence.Series, done <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for g := range 3 {
		all.Go(func() {
			for i := g; ; i++ {
				began := time.Now()
				ids, err := mixed(ctx, s, i)
				n.add(time.Since(began), ids, err)
				pause := time.Millisecond
				if err != nil {
					pause = 50 * time.Millisecond
				}
				select {
				case <-done:
					return
				case <-time.After(pause):
				}
			}
		})
	}
}

// more waits until so many more numbers were issued, and says how long it took.
func (n *numbers) more(t *testing.T, what string, so int) {
	t.Helper()
	began := time.Now()
	for target := n.count() + so; n.count() < target; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			n.mu.Lock()
			defer n.mu.Unlock()
			t.Fatalf("%s: %d numbers do not come: %v", what, so, n.errs)
		}
	}
	t.Logf("%s: %d numbers after %s", what, so, time.Since(began).Round(time.Millisecond))
}

// check reports repeats, and compares with what the store says was granted.
func (n *numbers) check(t *testing.T, granted firn.ID) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.repeats) > 0 {
		t.Errorf("%d repeats: %v", len(n.repeats), n.repeats[:min(len(n.repeats), 10)])
	}
	for id := range n.seen {
		if id < 1 || id > granted {
			t.Errorf("%d was issued, and %d granted", id, granted)
		}
	}
	t.Logf("%d numbers, %d granted, slowest call %s, errors %v", len(n.seen), granted, n.slowest.Round(time.Millisecond), n.errs)
}

// TestOverStores draws from a series on every store there is an adapter for, with
// hand-back, and while its server is killed and started again. make full takes all
// stores; the tests of each have what is its own.
func TestOverStores(t *testing.T) {
	if testing.Short() {
		t.Skip("servers are not started with -short")
	}
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if !slices.Contains([]string{"sqlite", "postgres", "redis"}, b.name) {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			overStore(t, b)
		})
	}
}

func overStore(t *testing.T, b backend) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	var server *testserver.Server
	if b.server != nil {
		server = b.server(t, b.args...)
		url = server.URL()
	}
	operator := connect(t, url)
	if b.lossy {
		if _, err := sequence.Create(ctx, operator, "orders", nil); !errors.As(err, new(*sequence.LossyError)) {
			t.Fatalf("created on a lossy store: %v", err)
		}
	}
	if _, err := sequence.Create(ctx, operator, "orders", &sequence.Options{Cache: 50, MayRepeat: b.lossy}); err != nil {
		t.Fatal(err)
	}

	// Alone, and closed: no gap.
	n := newNumbers()
	for range 3 {
		s := begin(t, connect(t, url), sequence.Options{MayRepeat: b.lossy})
		for i := range 20 {
			ids, err := mixed(ctx, s, i)
			n.add(0, ids, err)
		}
		closeSeries(t, s)
	}
	if in := info(t, operator); int(in.Granted) != n.count() || len(n.errs) > 0 {
		t.Errorf("%d numbers were drawn alone, and %d granted; errors %v", n.count(), in.Granted, n.errs)
	}

	// Several, and then the server is killed under them.
	done := make(chan struct{})
	var all []*sequence.Series
	var drawing sync.WaitGroup
	start := func() {
		for range 3 {
			s := begin(t, connect(t, url), sequence.Options{MaxUnused: 500, MayRepeat: b.lossy})
			all = append(all, s)
			drawing.Go(func() { n.drawMixed(s, done) })
		}
	}
	start()
	n.more(t, "together", 1000)
	if server != nil {
		server.Kill(t)
		time.Sleep(300 * time.Millisecond)
		server.Start(t)
		if b.lossy { // another run of the server
			wait(t, func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.forgot >= 9 })
			if _, err := sequence.Recover(ctx, connect(t, url), 10_000, nil); err != nil {
				t.Fatal(err)
			}
			start()
		}
		n.more(t, "after the server was killed", 5000) // more than were in hand
	}
	close(done)
	drawing.Wait()
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Log(err) // a connection may be a dead one yet
		}
	}
	n.check(t, info(t, connect(t, url)).Granted)
	if !b.lossy && n.forgot > 0 {
		t.Errorf("said to have forgotten: %v", n.errs)
	}
}

// A series over three stores of different kinds goes on while one is killed, and
// with it again when it is back. make full kills each of them.
func TestTicketsOverStores(t *testing.T) {
	if testing.Short() {
		t.Skip("servers are not started with -short")
	}
	t.Parallel()
	servers := []*testserver.Server{testserver.Postgres(t), testserver.MariaDB(t, binlog...), testserver.Etcd(t)}
	connected := func() (stores []store.Store) {
		for _, s := range servers {
			stores = append(stores, connect(t, s.URL()))
		}
		return stores
	}
	if _, err := sequence.CreateAcross(ctx, connected(), "photos", &sequence.Options{Cache: 20}); err != nil {
		t.Fatal(err)
	}
	n := newNumbers()
	done := make(chan struct{})
	var all []*sequence.Series
	var drawing sync.WaitGroup
	for range 2 {
		s := openTickets(t, connected(), sequence.Options{MaxUnused: 500})
		all = append(all, s)
		drawing.Go(func() { n.drawMixed(s, done) })
	}
	n.more(t, "all there", 1000)
	killed := servers[:1]
	if testserver.Long() {
		killed = servers
	}
	for i, server := range killed {
		server.Kill(t)
		n.more(t, fmt.Sprintf("without store %d", i), 2000)
		server.Start(t)
		was := info(t, connect(t, server.URL())).Granted
		wait(t, func() bool { return info(t, connect(t, server.URL())).Granted > was })
		n.more(t, fmt.Sprintf("store %d is back", i), 500)
	}
	close(done)
	drawing.Wait()
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Log(err)
		}
	}
	// A request that is not answered takes 5 s: nobody waits for one.
	if len(n.errs) > 0 || n.slowest > 4500*time.Millisecond {
		t.Errorf("calls failed, or waited %s, with one store away: %v", n.slowest, n.errs)
	}
	granted := firn.ID(0)
	for _, st := range connected() {
		granted = max(granted, info(t, st).Granted)
	}
	n.check(t, granted)
}

// Lossy stores have no series over them, unless that is accepted; then
// one that comes back as another instance gives nothing, and the other goes on.
func TestTicketsOverLossyStores(t *testing.T) {
	if testing.Short() {
		t.Skip("servers are not started with -short")
	}
	t.Parallel()
	servers := []*testserver.Server{testserver.Redis(t), testserver.Redis(t)}
	stores := []store.Store{connect(t, servers[0].URL()), connect(t, servers[1].URL())}
	if _, err := sequence.CreateAcross(ctx, stores, "photos", nil); !errors.As(err, new(*sequence.LossyError)) {
		t.Fatalf("created on lossy stores: %v", err)
	}
	if _, err := sequence.CreateAcross(ctx, stores, "photos", &sequence.Options{MayRepeat: true, Cache: 20}); err != nil {
		t.Fatal(err)
	}
	n := newNumbers()
	s := openTickets(t, stores, sequence.Options{MaxUnused: 200, MayRepeat: true})
	for i := range 200 {
		ids, err := mixed(ctx, s, i)
		n.add(0, ids, err)
	}
	servers[0].Kill(t)
	servers[0].Start(t) // it keeps nothing
	for i := range 1000 {
		ids, err := mixed(ctx, s, i)
		n.add(0, ids, err)
	}
	wait(t, func() bool { return errors.As(s.States()[0].Err, new(*store.ForgotError)) })
	before := n.count()
	for i := range 200 {
		began := time.Now()
		ids, err := mixed(ctx, s, i)
		n.add(time.Since(began), ids, err)
		for _, id := range ids {
			if id%2 != 0 {
				t.Errorf("%d is of the store that has forgotten", id)
			}
		}
	}
	if n.count() == before || n.slowest > 4500*time.Millisecond || len(n.errs) > 0 {
		t.Errorf("%d numbers of the store that is left, slowest %s, %v", n.count()-before, n.slowest, n.errs)
	}
	s.Close()
	n.check(t, info(t, stores[1]).Granted)
}
