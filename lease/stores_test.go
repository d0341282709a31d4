package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/open"
)

// These tests run leases over every store there is an adapter for. Each lease has
// a connection of its own, as a process has.

// A backend is a kind of store.
type backend struct {
	name  string
	start func(testing.TB, ...string) *testserver.Server // nil: it needs none
	args  []string                                       // so that it keeps what it acknowledged when it is killed
	lossy bool
}

var backends = []backend{
	{name: "memory"},
	{name: "sqlite"},
	{name: "postgres", start: testserver.Postgres},
	{name: "mysql", start: testserver.MariaDB},
	{name: "redis", start: testserver.Redis, args: []string{"--appendonly", "yes", "--appendfsync", "always"}, lossy: true},
	{name: "etcd", start: testserver.Etcd},
	{name: "zookeeper", start: testserver.ZooKeeper},
}

// scenarios are what is tested over each store.
var scenarios = []struct {
	name   string
	own    bool // each store has a server for itself, which may be killed
	served bool // stores without a server are left out
	test   func(*over)
}{
	{name: "crowd", test: crowd},
	{name: "takeover", test: takeover},
	{name: "round trips", test: roundTrips},
	{name: "restore", own: true, test: restore},
	{name: "server killed", own: true, served: true, test: serverKilled},
	{name: "connections cut", served: true, test: connectionsCut},
}

// TestOverStores runs them all at once: mostly they wait. make full takes all stores; what is
// a store's own is tested with the store.
func TestOverStores(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers are not started with -short")
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, sc := range scenarios {
		for _, b := range backends {
			if sc.served && b.start == nil {
				continue
			}
			running.Go(func() {
				t.Run(sc.name+"/"+b.name, func(t *testing.T) {
					if !slices.Contains([]string{"sqlite", "postgres", "redis"}, b.name) {
						testserver.OnlyLong(t)
					}
					sc.test(newOver(t, b, sc.own))
				})
			})
		}
	}
}

// newOver begins a test over one store.
func newOver(t *testing.T, b backend, own bool) *over {
	x := &over{T: t, backend: b, pool: "pool-" + string(store.NewVersion())}
	switch {
	case b.name == "memory":
		x.memory = memory.New()
		return x
	case b.name == "sqlite":
		x.url = "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	case own:
		x.server = b.start(t, b.args...)
		x.url = x.server.URL()
	default:
		x.server = testserver.Shared(t, b.start)
		x.url = x.server.URL()
	}
	return x
}

// over is a test over one store.
type over struct {
	*testing.T
	backend
	pool   string
	url    string
	server *testserver.Server
	memory *memory.Store
	seen   sync.Map // id: who issued it
}

// connect makes a store as another process has it.
func (x *over) connect() *link {
	x.Helper()
	if x.memory != nil {
		return &link{Store: x.memory}
	}
	s, err := open.URL(context.Background(), x.url)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { s.Close() })
	return &link{Store: s}
}

// found makes the pool, as somebody does who knows that there was none, with an
// outage budget that keeps the waits short.
func (x *over) found(workers int64, outage time.Duration) {
	x.Helper()
	to := x.connect()
	promise, err := to.Durability(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	p := term.Pool{
		Store: promise.Identity, // or the first process that opens it would add it
		V:     1, ID: "founded", Layout: firn.Default().String(), Workers: fmt.Sprintf("0-%d", workers-1), Outage: outage.Milliseconds(), Limit: outage.Milliseconds(),
	}
	if x.lossy {
		p.Lossy = "founded so"
	}
	if _, err := to.Put(x.Context(), term.KeyPool(x.pool), p.Encode(), store.Condition{}); err != nil {
		x.Fatal(err)
	}
}

// budget is as short as can be on a machine that is busy with all these tests: the
// waits of several follow from it.
const budget = 5 * time.Second

// options take after some seconds what a dead holder has left.
func (x *over) options(name string) *lease.Options {
	return &lease.Options{
		Pool: x.pool, Name: name, Outage: budget, Renew: 500 * time.Millisecond, TTL: 2 * time.Second, Wait: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// issue takes ids for a while, and notes who issued them.
func (x *over) issue(by string, l *lease.Lease, d time.Duration) (n int) {
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		ids, err := l.Append(x.Context(), nil, 20)
		if err != nil {
			x.Errorf("%s: %v", by, err)
			return n
		}
		for _, id := range ids {
			if other, twice := x.seen.LoadOrStore(id, by); twice {
				x.Errorf("%d was issued by %s and by %s", id, other, by)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return n
}

// A link is a connection to a store that counts what goes over it, and can be cut.
type link struct {
	store.Store
	gets, puts, lists, asked atomic.Int64
	unknown                  atomic.Int64 // Puts and Gets of which it is not known what came of them
	cut                      atomic.Bool
}

var errCut = errors.New("the link is cut")

func (l *link) Get(ctx context.Context, key string) (store.Record, error) {
	if l.gets.Add(1); l.cut.Load() {
		return store.Record{}, errCut
	}
	rec, err := l.Store.Get(ctx, key)
	if err != nil {
		l.unknown.Add(1)
	}
	return rec, err
}

func (l *link) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if l.puts.Add(1); l.cut.Load() {
		return store.Record{}, errCut
	}
	rec, err := l.Store.Put(ctx, key, value, cond)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		l.unknown.Add(1)
	}
	return rec, err
}

func (l *link) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if l.lists.Add(1); l.cut.Load() {
		return nil, errCut
	}
	return l.Store.List(ctx, prefix)
}

func (l *link) Durability(ctx context.Context) (store.Durability, error) {
	if l.asked.Add(1); l.cut.Load() {
		return store.Durability{}, errCut
	}
	return l.Store.Durability(ctx)
}

// Twice as many processes as there are workers come at once. Those who do not wait
// are told who has them all, and it is true; those who do get their turn.
func crowd(x *over) {
	const n = 6
	outage := budget
	if !x.lossy { // no waits follow from it
		outage = time.Minute
	}
	x.found(n, outage)
	var wait sync.WaitGroup
	var mu sync.Mutex
	holders := map[string]int64{}
	in, out := make(chan struct{}, 2*n), make(chan struct{})
	for i := range 2 * n {
		wait.Go(func() {
			name := fmt.Sprintf("p%d", i)
			o := x.options(name)
			o.TTL, o.Outage = 30*time.Second, outage // who is late on a busy machine is not taken for dead
			l, err := lease.Open(x.Context(), x.connect(), o)
			if err != nil {
				x.Errorf("%s: %v", name, err)
				in <- struct{}{}
				return
			}
			st := l.State()
			mu.Lock()
			for other, worker := range holders {
				if worker == st.Worker {
					x.Errorf("%s and %s hold worker %d", other, name, worker)
				}
			}
			holders[name] = st.Worker
			mu.Unlock()
			in <- struct{}{}
			<-out
			x.issue(name, l, 300*time.Millisecond)
			mu.Lock()
			delete(holders, name)
			mu.Unlock()
			if err := l.Close(); err != nil {
				x.Errorf("%s: %v", name, err)
			}
		})
	}
	for range n {
		<-in
	}
	impatient := x.options("impatient")
	impatient.Wait = 300 * time.Millisecond
	_, err := lease.Open(x.Context(), x.connect(), impatient)
	var full *term.FullError
	if !errors.As(err, &full) || full.Workers != n {
		x.Errorf("%v", err)
	} else {
		mu.Lock()
		for _, h := range full.Holders {
			if at, holds := holders[h.Name]; !holds || at != h.Worker {
				x.Errorf("worker %d is said to be held by %q; the holders are %v", h.Worker, h.Name, holders)
			}
		}
		mu.Unlock()
	}
	close(out)
	wait.Wait()
}

// The worker of a process that died falls free when it was not heard of for its
// time to live.
func takeover(x *over) {
	x.found(1, budget)
	to := x.connect()
	dead, err := lease.Open(x.Context(), to, x.options("dead"))
	if err != nil {
		x.Fatal(err)
	}
	x.issue("dead", dead, 100*time.Millisecond)
	to.cut.Store(true)
	died := time.Now()
	done := make(chan error)
	go func() { done <- dead.Close() }()
	next, err := lease.Open(x.Context(), x.connect(), x.options("next"))
	if err != nil {
		x.Fatal(err)
	}
	took := time.Since(died)
	x.issue("next", next, 100*time.Millisecond)
	if st := next.State(); st.Worker != 0 || st.Term < 2 {
		x.Errorf("%+v", st)
	}
	least := time.Second
	if x.lossy { // the new holder waits for a quarantine
		least += budget + 10*time.Second
	}
	if took < least {
		x.Errorf("taken over after %s, not %s", took, least)
	}
	x.Logf("taken over after %s", took.Round(10*time.Millisecond))
	if err := next.Close(); err != nil {
		x.Error(err)
	}
	if err := <-done; err == nil {
		x.Error("a worker was given back to a store that was out of reach")
	}
}

// A free worker is taken in six round trips, besides two that ask what the store
// promises and which it is; and an extension is one.
func roundTrips(x *over) {
	x.found(4, budget)
	rounds := int64(5)
	if x.lossy {
		rounds = 1 // each has to wait
	}
	to := x.connect()
	var reads, extensions, extended int64
	for range rounds {
		was, asked := to.gets.Load()+to.lists.Load(), to.asked.Load()
		l, err := lease.Open(x.Context(), to, x.options("counted"))
		if err != nil {
			x.Fatal(err)
		}
		// Besides reading there is the Put that takes the worker; whatever
		// else is put before the first id extends it.
		reads += to.gets.Load() + to.lists.Load() - was
		if n := to.asked.Load() - asked; n != 2 {
			x.Errorf("asked %d times what the store promises", n)
		}
		was, puts := to.gets.Load()+to.lists.Load(), to.puts.Load()
		for end := time.Now().Add(time.Minute); to.puts.Load() < puts+2 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		extensions += to.puts.Load() - puts
		extended += to.gets.Load() + to.lists.Load() - was
		if err := l.Close(); err != nil {
			x.Fatal(err)
		}
	}
	// On a busy machine a Put may have to be looked after, or sent again.
	spare := 2 * to.unknown.Load()
	if reads > 5*rounds+spare {
		x.Errorf("taking a worker takes %.1f calls", float64(reads+rounds)/float64(rounds))
	}
	if extended > spare || extensions < 2*rounds {
		x.Errorf("%d extensions, and %d calls besides", extensions, extended)
	}
	x.Logf("a worker is taken in %.1f calls; %d extensions take %d", float64(reads+rounds)/float64(rounds), extensions, extensions+extended)
}

// An earlier copy of the records is put back, and store recover is run: nothing
// that was issued after the copy was made is issued again.
func restore(x *over) {
	x.found(1, budget)
	to := x.connect()
	l, err := lease.Open(x.Context(), to, x.options("before"))
	if err != nil {
		x.Fatal(err)
	}
	operator := x.connect()
	backup, err := operator.List(x.Context(), "")
	if err != nil {
		x.Fatal(err)
	}
	x.issue("before", l, 2*time.Second)
	to.cut.Store(true)
	l.Close()
	for _, rec := range backup {
		now, err := operator.Get(x.Context(), rec.Key)
		if err == nil {
			_, err = operator.Put(x.Context(), rec.Key, rec.Value, store.Condition{Version: now.Version})
		}
		if err != nil {
			x.Fatal(err)
		}
	}
	if _, err := pool.Recover(x.Context(), operator, budget); err != nil {
		x.Fatal(err)
	}
	after, err := lease.Open(x.Context(), x.connect(), x.options("after"))
	if err != nil {
		x.Fatal(err)
	}
	x.issue("after", after, 100*time.Millisecond)
	if err := after.Close(); err != nil {
		x.Error(err)
	}
}

// The server is killed, and back before the outage budget is used up: nobody who
// takes ids notices.
func serverKilled(x *over) {
	outage := 30 * time.Second // for a server that starts slowly
	if x.lossy {
		outage = 20 * time.Second // it is waited for at the start
	}
	x.found(4, outage)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	ready := make(chan struct{}, 4)
	for i := range 3 {
		wait.Go(func() {
			name := fmt.Sprintf("p%d", i)
			o := x.options(name)
			o.Outage = outage
			l, err := lease.Open(x.Context(), x.connect(), o)
			for end := time.Now().Add(time.Minute); err == nil && time.Until(l.State().EndsAt) < outage*2/3 && time.Now().Before(end); {
				x.issue(name, l, 50*time.Millisecond) // until the ramp is over
			}
			ready <- struct{}{}
			if err != nil {
				x.Errorf("%s: %v", name, err)
				return
			}
			was := l.State()
			for done := false; !done && !x.Failed(); {
				x.issue(name, l, 100*time.Millisecond)
				select {
				case <-stop:
					done = true
				default:
				}
			}
			// A connection may need longer than the store.
			for end := time.Now().Add(outage); l.State().StoreAway && time.Now().Before(end) && !x.Failed(); {
				x.issue(name, l, 100*time.Millisecond)
			}
			if st := l.State(); st.StoreAway || !x.lossy && (st.Term != was.Term || st.Worker != was.Worker) {
				x.Errorf("%s: %+v, was %+v", name, st, was)
			}
			if err := l.Close(); err != nil {
				x.Errorf("%s: %v", name, err)
			}
		})
	}
	for range 3 {
		<-ready
	}
	time.Sleep(time.Second)
	x.server.Kill(x)
	killed := time.Now()
	time.Sleep(500 * time.Millisecond)
	x.server.Start(x)
	x.Logf("back after %s", time.Since(killed).Round(10*time.Millisecond))
	time.Sleep(2 * time.Second)
	close(stop)
	wait.Wait()
}

// Connections end again and again, and now and then a reply is lost: ids go on.
func connectionsCut(x *over) {
	outage := 30 * time.Second
	if x.lossy {
		outage = 20 * time.Second // it is waited for at the start
	}
	x.found(2, outage)
	proxy := testserver.NewProxy(x, x.server.Addr())
	x.url = strings.Replace(x.url, x.server.Addr(), proxy.Addr(), 1)
	o := x.options("cut")
	o.Outage = outage
	l, err := lease.Open(x.Context(), x.connect(), o)
	if err != nil {
		x.Fatal(err)
	}
	for i := range 8 {
		horizon := l.State().EndsAt
		if i%2 == 0 {
			proxy.LoseReplies(1)
		} else {
			proxy.Cut()
		}
		for end := time.Now().Add(outage); !l.State().EndsAt.After(horizon) && time.Now().Before(end) && !x.Failed(); {
			x.issue("cut", l, 50*time.Millisecond)
		}
		if !l.State().EndsAt.After(horizon) {
			x.Fatalf("not extended for %s: %+v", outage, l.State())
		}
	}
	for end := time.Now().Add(outage); l.State().StoreAway && time.Now().Before(end); {
		x.issue("cut", l, 50*time.Millisecond)
	}
	if st := l.State(); st.StoreAway || !st.Issuing {
		x.Errorf("%+v", st)
	}
	if err := l.Close(); err != nil {
		x.Error(err)
	}
}
