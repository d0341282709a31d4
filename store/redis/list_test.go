package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestListPages lists a few thousand records among many others, while the table
// they are in grows.
func TestListPages(t *testing.T) {
	server := testserver.Redis(t, "--appendonly", "no")
	c := client(t, server.Addr())
	s := New(c, nil)
	fill := func(prefix string, n int) {
		for i := 0; i < n; i += 1000 {
			args := []any{"HSET", DefaultKey}
			for j := i; j < min(i+1000, n); j++ {
				args = append(args, fmt.Sprintf("%s%06d", prefix, j), fmt.Sprintf("%s 1763700000000000\n%0200d", store.NewVersion(), j))
			}
			do(t, c, args...)
		}
	}
	const workers = 4096
	fill("pool/web/", workers)
	fill("pool/web0", 10)
	for _, others := range []int{0, 3 * page} {
		fill("other/", others)
		growing := make(chan struct{})
		go func() {
			defer close(growing)
			fill("grow/", others)
		}()
		for range 5 {
			start := time.Now()
			l, err := s.List(t.Context(), "pool/web/")
			if err != nil || len(l) != workers || !strings.HasPrefix(l[0].Key, "pool/web/") {
				t.Errorf("%d records among %d: %v", len(l), others, err)
			}
			t.Logf("%d of %d in %v", len(l), workers+others, time.Since(start))
		}
		<-growing
	}
}

// TestListOfTwoServers has another server answer for the second page.
func TestListOfTwoServers(t *testing.T) {
	one, two := testserver.Redis(t), testserver.Redis(t)
	p := testserver.NewProxy(t, one.Addr())
	c := client(t, p.Addr())
	s := New(c, nil)
	args := []any{"HSET", DefaultKey}
	for j := range page + page/2 {
		args = append(args, fmt.Sprintf("k/%06d", j), fmt.Sprintf("%s 1763700000000000\n0", store.NewVersion()))
	}
	do(t, client(t, one.Addr()), args...)
	do(t, client(t, two.Addr()), args...)
	all, err := s.List(t.Context(), "k/")
	if err != nil || len(all) != page+page/2 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	calls := 0
	c.AddHook(hook(func() {
		if calls++; calls == 2 {
			p.Target(two.Addr())
			p.Cut()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	if l, err := s.List(t.Context(), "k/"); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("%d records of %d, %v", len(l), len(all), err)
	}
	if l, err := s.List(t.Context(), "k/"); err != nil || len(l) != len(all) {
		t.Errorf("asked again: %d records of %d, %v", len(l), len(all), err)
	}
}

// TestListOfKeyGone has all records removed between two pages.
func TestListOfKeyGone(t *testing.T) {
	server := testserver.Redis(t)
	admin := client(t, server.Addr())
	for _, remove := range [][]any{{"FLUSHALL"}, {"DEL", DefaultKey}, {"RENAME", DefaultKey, "aside"}} {
		args := []any{"HSET", DefaultKey}
		for j := range page + page/2 {
			args = append(args, fmt.Sprintf("k/%06d", j), fmt.Sprintf("%s 1763700000000000\n0", store.NewVersion()))
		}
		do(t, admin, args...)
		c := client(t, server.Addr())
		s := New(c, nil)
		if _, err := s.Get(t.Context(), "k/000000"); err != nil {
			t.Fatal(err)
		}
		calls := 0
		c.AddHook(hook(func() {
			if calls++; calls == 2 {
				do(t, admin, remove...)
			}
		}))
		if l, err := s.List(t.Context(), "k/"); err == nil || !strings.Contains(err.Error(), "in the middle of a list") {
			t.Errorf("%v: %d records, %v", remove, len(l), err)
		}
		if l, err := s.List(t.Context(), "k/"); err != nil || len(l) != 0 {
			t.Errorf("%v, asked again: %d records, %v", remove, len(l), err)
		}
	}
}

// A hook is called before each command.
type hook func()

func (hook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h hook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		h()
		return next(ctx, cmd)
	}
}

func (hook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}
