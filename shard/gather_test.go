package shard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

func TestGather(t *testing.T) {
	all := newServers(t, "mod", 8, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	step := func(name string, by int) {
		mu.Lock()
		defer mu.Unlock()
		now[name] += by
		most[name] = max(most[name], now[name])
	}
	o := &shard.GatherOptions{AtOnce: 3, PerServer: 2}
	got, err := shard.Gather(t.Context(), c.All(), o, func(ctx context.Context, s shard.Shard, tx pgx.Tx) (schema string, err error) {
		server := map[bool]string{true: "a", false: "b"}[s.Number() < 4]
		step(server, 1)
		step("all", 1)
		defer step(server, -1)
		defer step("all", -1)
		err = tx.QueryRow(ctx, "SELECT current_schema() FROM pg_sleep(0.01)").Scan(&schema)
		return schema, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if g.Shard != c.Shard(int64(i)) || g.Value != fmt.Sprintf("insta%d", i) {
			t.Errorf("%d: %+v", i, g)
		}
	}
	if len(got) != 8 || most["a"] > 2 || most["b"] > 2 || most["all"] > 3 {
		t.Errorf("%d shards, and at once at most %v", len(got), most)
	}
}

func TestGatherErrors(t *testing.T) {
	all := newServers(t, "mod", 4, "a")
	c := openCluster(t, all.pools(t), nil)
	fault := errors.New("fault")
	some := func(ctx context.Context, s shard.Shard, _ pgx.Tx) (int64, error) {
		if s.Number() == 1 {
			return 0, fault
		}
		return s.Number(), nil
	}
	shards := func(numbers ...int64) iter.Seq[shard.Shard] {
		return func(yield func(shard.Shard) bool) {
			for _, n := range numbers {
				if !yield(c.Shard(n)) {
					return
				}
			}
		}
	}
	// The first ends those that run.
	got, err := shard.Gather(t.Context(), shards(0, 1, 2, 3), nil, func(ctx context.Context, s shard.Shard, tx pgx.Tx) (int64, error) {
		if s.Number() != 1 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return some(ctx, s, tx)
	})
	var e *shard.TxError
	if got != nil || !errors.Is(err, fault) || !errors.As(err, &e) || e.Shard != 1 {
		t.Errorf("%v, %v", got, err)
	}
	got, err = shard.Gather(t.Context(), shards(0, 1, 77, 3), &shard.GatherOptions{GoOn: true}, some)
	if !errors.Is(err, fault) || !errors.Is(err, shard.ErrNoShard) || len(got) != 4 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, g := range got {
		if bad := i == 1 || i == 2; (g.Err != nil) != bad || !bad && g.Value != g.Shard.Number() {
			t.Errorf("%d: %+v", i, g)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shard.Gather(ctx, c.All(), nil, some); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	o := &shard.GatherOptions{AtOnce: -1, PerServer: -1}
	if got, err := shard.Gather(t.Context(), shards(3), o, some); len(got) != 1 || got[0].Value != 3 || err != nil {
		t.Errorf("limits below zero: %v, %v", got, err)
	}
	if got, err := shard.Gather(t.Context(), shards(), nil, some); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// pages reads ids.
func pages(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]firn.ID, error) {
	rows, err := tx.Query(ctx, "SELECT id FROM item WHERE id < $1 ORDER BY id DESC LIMIT $2", before, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[firn.ID])
}

func itself(id firn.ID) firn.ID { return id }

func TestFeed(t *testing.T) {
	all := newServers(t, "mod", 4, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	var ids []firn.ID
	for i := range 30 {
		// Shard 3 has none, and shard 0 the most.
		ids = append(ids, mustInsert(t, c.Shard([]int64{0, 1, 0, 2, 0}[i%5]), ""))
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	for _, page := range []int{1, 2, 3, 18, 50} {
		var got []firn.ID
		for id, err := range shard.Feed(t.Context(), c.All(), &shard.FeedOptions{Page: page}, itself, pages) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("pages of %d: %v, want %v", page, got, ids)
		}
	}
	// A page at a time, by the last id of the one before.
	var got []firn.ID
	for before := firn.ID(0); ; before = got[len(got)-1] {
		had := len(got)
		for id, err := range shard.Feed(t.Context(), c.All(), &shard.FeedOptions{Before: before, Page: 7}, itself, pages) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, id); len(got) == had+7 {
				break
			}
		}
		if len(got) == had {
			break
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("by pages: %v, want %v", got, ids)
	}
}

// TestFeedIsLazy: a page of each shard is read, and no more while those last.
func TestFeedIsLazy(t *testing.T) {
	all := newServers(t, "mod", 3, "a")
	c := openCluster(t, all.pools(t), nil)
	for i := range 30 {
		mustInsert(t, c.ForNumber(int64(i)), "")
	}
	var mu sync.Mutex
	reads := 0
	count := func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]firn.ID, error) {
		mu.Lock()
		defer mu.Unlock()
		reads++
		return pages(ctx, tx, before, n)
	}
	n := 0
	for _, err := range shard.Feed(t.Context(), c.All(), &shard.FeedOptions{Page: 5}, itself, count) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 5 {
			break
		}
	}
	if reads != 3 {
		t.Errorf("%d reads for 5 rows", reads)
	}
}

func TestFeedRefuses(t *testing.T) {
	all := newServers(t, "mod", 2, "a")
	c := openCluster(t, all.pools(t), nil)
	for i := range 6 {
		mustInsert(t, c.ForNumber(int64(i)), "")
	}
	type pageFunc = func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]firn.ID, error)
	for want, page := range map[string]pageFunc{
		"WHERE id < $1 ORDER BY id DESC": func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]firn.ID, error) {
			ids, err := pages(ctx, tx, before, n)
			slices.Reverse(ids)
			return ids, err
		},
		"3 rows, and 2 were asked for": func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]firn.ID, error) {
			return pages(ctx, tx, before, n+1)
		},
		"is not below": func(ctx context.Context, tx pgx.Tx, _ firn.ID, n int) ([]firn.ID, error) {
			return pages(ctx, tx, 1<<62, n) // the same page for ever
		},
		"division by zero": func(ctx context.Context, tx pgx.Tx, _ firn.ID, _ int) ([]firn.ID, error) {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			return nil, err
		},
	} {
		n := 0
		var last error
		for _, err := range shard.Feed(t.Context(), maps.Keys(map[shard.Shard]bool{c.Shard(0): true}), &shard.FeedOptions{Page: 2}, itself, page) {
			if last = err; err == nil {
				n++
			}
			if n > 10 {
				break // it would go on for ever
			}
		}
		failsWith(t, last, "", want, "shard 0 on a")
		if n > 3 {
			t.Errorf("%s: %d rows", want, n)
		}
	}
}
