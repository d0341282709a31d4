package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/backfill"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// Rows of another system get ids of their dates.
func Example() {
	ctx := context.Background()
	store := memory.New()
	info, err := pool.Create(ctx, store, pool.Default, nil)
	if err != nil {
		log.Fatal(err)
	}
	worker, _, err := pool.FreeWorker(ctx, store, pool.Default)
	if err != nil {
		log.Fatal(err)
	}
	b, err := backfill.New(info.Layout, worker, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, day := range []int{3, 2, 3} {
		if _, err := b.Add(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)); err != nil {
			log.Fatal(err)
		}
	}
	if err := b.Reserve(ctx, store, pool.Default); err != nil {
		log.Fatal(err)
	}
	for _, id := range b.IDs() {
		fmt.Println(id)
	}
	// Output:
	// 132996346679390208
	// 132633958813790208
	// 132996346679390209
}

func TestAdd(t *testing.T) {
	layout := firn.Default()
	if _, err := backfill.New(layout, layout.Workers(), 0); err == nil {
		t.Error("a worker that the layout does not have")
	}
	b, err := backfill.New(layout, 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seq, _ := layout.Field("seq")
	for range seq.Max() + 1 {
		if _, err := b.Add(at); err != nil {
			t.Fatal(err)
		}
	}
	var full *backfill.FullError
	var early *backfill.EarlyError
	var future *backfill.FutureError
	if _, err := b.Add(at); !errors.As(err, &full) || full.IDs != seq.Max()+1 || full.Retryable() {
		t.Error(err)
	}
	if _, err := b.Add(layout.Epoch().Add(-1)); !errors.As(err, &early) || early.Retryable() {
		t.Error(err)
	}
	if _, err := b.Add(time.Now().Add(time.Hour)); !errors.As(err, &future) || future.Retryable() {
		t.Error(err)
	}
	if _, err := b.Add(at.Add(time.Second)); err != nil {
		t.Error(err)
	}
	seen := map[firn.ID]bool{}
	for _, id := range b.IDs() {
		if p, err := layout.Decode(id); err != nil || p.Worker != 7 || seen[id] {
			t.Fatalf("%d: %+v, %v", id, p, err)
		}
		seen[id] = true
	}
	if len(seen) != int(seq.Max())+2 {
		t.Errorf("%d ids", len(seen))
	}
}

// The same ids have their worker again; others do not.
func TestReserve(t *testing.T) {
	s := memory.New()
	info, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	reserve := func(worker int64, times ...int) error {
		b, err := backfill.New(info.Layout, worker, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range times {
			if _, err := b.Add(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)); err != nil {
				t.Fatal(err)
			}
		}
		return b.Reserve(t.Context(), s, "web")
	}
	for range 2 {
		if err := reserve(1, 1, 2); err != nil {
			t.Error(err)
		}
	}
	if err := reserve(1, 1, 3); !errors.As(err, new(*pool.BackfillError)) {
		t.Error(err)
	}
	if n, ok, err := pool.FreeWorker(t.Context(), s, "web"); n != 0 || !ok || err != nil {
		t.Errorf("%d, %v, %v", n, ok, err)
	}
	if err := reserve(0, 1); err != nil {
		t.Error(err)
	}
	if _, ok, err := pool.FreeWorker(t.Context(), s, "web"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}
