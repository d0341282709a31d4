package document_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// backends are the stores that there are.
var backends = []struct {
	name   string
	server func(testing.TB, ...string) *testserver.Server // nil: a file
}{
	{"sqlite", nil},
	{"postgres", testserver.Postgres},
	{"mysql", testserver.MariaDB},
	{"etcd", testserver.Etcd},
	{"zk", testserver.ZooKeeper},
	{"redis", testserver.Redis},
}

// inFirstTier are the backends that make test takes: a file, the server that most have, and one
// that may lose what it acknowledged. The tests of each store have what is its own.
var inFirstTier = []string{"sqlite", "postgres", "redis"}

// connected returns a connection of its own to a store.
func connected(t *testing.T, url string) *open.Store {
	t.Helper()
	st, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// A drawn is what several processes got, as one who reads all of it sees it.
type drawn struct {
	mu    sync.Mutex
	times map[string]int
	count map[string][]int64
	errs  map[string]int

	stops int // by another instance of the store
}

func newDrawn() *drawn {
	return &drawn{times: map[string]int{}, count: map[string][]int64{}, errs: map[string]int{}}
}

func (d *drawn) add(all []document.Number, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range all {
		d.times[s.Text]++
		d.count[s.Period] = append(d.count[s.Period], s.Count)
	}
	if err != nil {
		d.errs[fmt.Sprintf("%.60s", err)]++
		if errors.As(err, new(*document.InstanceError)) {
			d.stops++
		}
	}
}

// check reports what was given out twice, and returns how many numbers nobody got.
func (d *drawn) check(t *testing.T) (gaps int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for text, n := range d.times {
		if n > 1 {
			t.Errorf("%s was given out %d times", text, n)
		}
	}
	for _, counts := range d.count {
		gaps += int(slices.Max(counts)) - len(counts)
	}
	return gaps
}

// draw has processes draw until ctx is done, or each has so many.
func draw(ctx context.Context, all []*document.Series, each int, d *drawn) {
	var wg sync.WaitGroup
	for _, s := range all {
		for range 3 {
			wg.Go(func() {
				for i := 0; i < each && ctx.Err() == nil; {
					call, cancel := context.WithTimeout(ctx, 20*time.Second)
					got, err := s.Append(call, nil, 1+i%3)
					cancel()
					d.add(got, err)
					pause := 5 * time.Millisecond // the processor is the server's too
					if err != nil {
						pause = 20 * time.Millisecond
					}
					time.Sleep(pause)
					i += len(got)
				}
			})
		}
	}
	wg.Wait()
}

// Processes on every store draw one series without a gap, while all goes well,
// and without a repetition while the server is killed and started again. A lossy
// one stops then, until its operator has raised the counters. make full takes all stores.
func TestServers(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if !slices.Contains(inFirstTier, b.name) {
				testserver.OnlyLong(t)
			}
			t.Parallel() // most of it is waiting for a server
			url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
			var server *testserver.Server
			if b.server != nil {
				server = b.server(t)
				url = server.URL()
			}
			o := document.Options{Zone: "Asia/Ho_Chi_Minh", MayRepeat: b.name == "redis"}
			operator := connected(t, url)
			if info, err := document.Create(t.Context(), operator, "invoice", with(invoice, &o)); err != nil || info.Pattern != invoice {
				t.Fatalf("%+v, %v", info, err)
			}
			var all []*document.Series
			for range 4 {
				all = append(all, process(t, url, o))
			}
			d := newDrawn()
			began := time.Now()
			draw(t.Context(), all, 50, d)
			if gaps := d.check(t); gaps > 0 || len(d.errs) > 0 {
				t.Errorf("%d numbers are missing; errors %v", gaps, d.errs)
			}
			t.Logf("%d texts in %s", len(d.times), time.Since(began).Round(time.Millisecond))
			if server == nil {
				return
			}
			times := 1
			if o.MayRepeat {
				times = 2 // what is raised once is raised again
			}
			kills(t, server, times, all, d, func() {
				if !o.MayRepeat {
					return
				}
				await(t, d, "nobody stops", func() bool { return d.stops > 0 })
				if _, err := document.Recover(t.Context(), operator, 1000, nil); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second) // calls that failed before return
				d.mu.Lock()
				d.stops = 0
				d.mu.Unlock()
			})
			if !o.MayRepeat && d.stops > 0 {
				t.Errorf("stopped by another instance; errors %v", slices.Sorted(maps.Keys(d.errs)))
			}
		})
	}
}

func process(t *testing.T, url string, o document.Options) *document.Series {
	t.Helper()
	s, err := document.Open(t.Context(), connected(t, url), "invoice", with(invoice, &o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Log(err) // its connection may be a dead one
		}
	})
	return s
}

// kills kills a server under load, so many times, and starts it again; restored is
// what its operator does then.
func kills(t *testing.T, server *testserver.Server, times int, all []*document.Series, d *drawn, restored func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		draw(ctx, all, 1<<30, d)
	}()
	for range times {
		time.Sleep(300 * time.Millisecond)
		server.Kill(t)
		time.Sleep(100 * time.Millisecond)
		server.Start(t)
		time.Sleep(500 * time.Millisecond)
		restored()
		texts := 0
		await(t, d, "nothing comes after the server did", func() bool {
			if texts == 0 {
				texts = len(d.times)
			}
			return len(d.times) >= texts+100
		})
	}
	cancel()
	<-done
	gaps := d.check(t)
	t.Logf("%d texts, %d numbers missing", len(d.times), gaps)
}

// await waits until something is so.
func await(t *testing.T, d *drawn, otherwise string, so func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 60*time.Second; time.Sleep(20 * time.Millisecond) {
		d.mu.Lock()
		ok := so()
		d.mu.Unlock()
		if ok {
			return
		}
	}
	t.Errorf("%s: %v", otherwise, d.errs)
}
