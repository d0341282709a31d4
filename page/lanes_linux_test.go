//go:build linux && (amd64 || arm64)

package page_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// lanes serves an agent's lanes until the test ends or stop is called.
func lanes(t *testing.T, st store.Store, path string, n int) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, n)
	for lane := range n {
		l, err := lease.Open(t.Context(), st, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			err := page.Serve(ctx, l, path, &page.Options{Lanes: n, Lane: lane})
			done <- errors.Join(err, l.Close())
		}()
		at := path
		if lane > 0 {
			at = fmt.Sprintf("%s.%d", path, lane)
		}
		exists(t, at)
	}
	stop = sync.OnceValue(func() error {
		cancel()
		var err error
		for range n {
			err = errors.Join(err, <-done)
		}
		return err
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// exists waits until the path has a page that is not closed.
func exists(t *testing.T, path string) {
	t.Helper()
	for range 500 {
		b, err := os.ReadFile(path)
		if err == nil && string(b[1024:1032]) != "\xff\xff\xff\xff\xff\xff\xff\xff" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: no page", path)
}

// A client of lanes takes ids and checks that they increase and that none repeats.
type taker struct {
	*page.Page
	last firn.ID
}

func (c *taker) worker(t *testing.T, seen map[firn.ID]bool) int64 {
	t.Helper()
	id, err := c.Next(t.Context())
	if err != nil || id <= c.last || seen[id] {
		t.Fatalf("%d after %d, %v", id, c.last, err)
	}
	c.last, seen[id] = id, true
	parts, err := firn.Default().Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return parts.Worker
}

// Each client takes a lane and keeps to it; lanes get the same number of clients. A client of a lane that the next agent
// does not have takes one that it has. Ids of each client increase.
func TestLanes(t *testing.T) {
	st, path := memory.New(), filepath.Join(dir(t), "page")
	stop := lanes(t, st, path, 3)
	seen := map[firn.ID]bool{}
	clients := make([]*taker, 9)
	count := map[int64]int{}
	for i := range clients {
		clients[i] = &taker{Page: open(t, path)}
		worker := clients[i].worker(t, seen)
		count[worker]++
		for range 1000 {
			if again := clients[i].worker(t, seen); again != worker {
				t.Fatalf("client %d changed from worker %d to %d", i, worker, again)
			}
		}
	}
	if len(count) != 3 || count[0] != 3 || count[1] != 3 || count[2] != 3 {
		t.Errorf("clients by worker: %v", count)
	}
	for _, n := range []int{2, 1, 4} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		stop = lanes(t, st, path, n)
		for _, c := range clients {
			c.worker(t, seen)
		}
	}
}

// A client takes lane 0 where its lane has no page that it can use: none, one that is closed, one of another pool, or another lane's.
func TestLanesThatAreMissing(t *testing.T) {
	st, path := memory.New(), filepath.Join(dir(t), "page")
	stop := lanes(t, st, path, 5)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l, err := lease.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- page.Serve(ctx, l, path, &page.Options{Lanes: 5}) }()
	exists(t, path)
	other, same := filepath.Join(filepath.Dir(path), "other"), filepath.Join(filepath.Dir(path), "same")
	lanes(t, memory.New(), other, 4)
	serve(t, st, same)
	exists(t, same)
	if err := errors.Join(os.Remove(path+".2"), os.Rename(other+".3", path+".3"), os.Rename(same, path+".4")); err != nil {
		t.Fatal(err)
	}
	seen := map[firn.ID]bool{}
	for range 10 {
		c := &taker{Page: open(t, path)}
		if worker := c.worker(t, seen); worker != l.State().Worker {
			t.Errorf("worker %d, and the only page is of worker %d", worker, l.State().Worker)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client of a lane does not change to an agent of another pool, which has fewer lanes.
func TestLanesOfAnotherPool(t *testing.T) {
	path := filepath.Join(dir(t), "page")
	stop := lanes(t, memory.New(), path, 3)
	var clients []*page.Page
	for range 3 {
		p, err := page.Open(path, &page.OpenOptions{Wait: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, p)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	lanes(t, memory.New(), path, 1)
	for i, p := range clients {
		if id, err := p.Next(t.Context()); err == nil {
			t.Errorf("client %d got %d from a page of another pool", i, id)
		}
	}
}

func TestLanesRefused(t *testing.T) {
	path := filepath.Join(dir(t), "page")
	l, err := lease.Open(t.Context(), memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, o := range []page.Options{{Lanes: 65}, {Lanes: -1}, {Lanes: 2, Lane: 2}, {Lane: 1}, {Lanes: 2, Lane: -1}} {
		if err := page.Serve(t.Context(), l, path, &o); err == nil || !strings.Contains(err.Error(), "lane") {
			t.Errorf("lane %d of %d: %v", o.Lane, o.Lanes, err)
		}
	}
	if _, err := l.Next(t.Context()); err != nil {
		t.Error(err)
	}
}
