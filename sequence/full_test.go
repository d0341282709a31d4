package sequence_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// A fullStore reads, and while it is full fails every write.
type fullStore struct {
	store.Store
	full   atomic.Bool
	writes atomic.Int64 // that failed
	tried  store.Version
}

func (f *fullStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if f.full.Load() {
		f.writes.Add(1)
		return store.Record{Version: f.tried}, errors.New("the disk is full")
	}
	return f.Store.Put(ctx, key, value, cond)
}

// A store that can be read and fails every write is away from the first failed write until a
// write is acknowledged: the log has one line at the beginning and one at the end.
func TestOutageOfAFullDisk(t *testing.T) {
	for name, tried := range map[string]store.Version{"nothing was sent": "", "the outcome is unknown": "never"} {
		for stock, cache := range map[string]int{"nothing in hand": 1, "numbers in hand": 100} {
			t.Run(name+", "+stock, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { fillDisk(t, tried, cache) })
			})
		}
	}
}

func fillDisk(t *testing.T, tried store.Version, cache int) {
	f := &fullStore{Store: memory.New(), tried: tried}
	var log bytes.Buffer
	if _, err := sequence.Create(ctx, f, "orders", nil); err != nil {
		t.Fatal(err)
	}
	s, err := sequence.Open(ctx, f, "orders", &sequence.Options{
		Cache: cache, CacheFor: time.Second, Wait: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	next(t, s)
	f.full.Store(true)
	for err = nil; err == nil; _, err = s.Next(ctx) {
		time.Sleep(time.Millisecond)
	}
	if !errors.As(err, new(*sequence.OutageError)) {
		t.Errorf("%v: want an outage", err)
	}
	before, writes := s.State(), f.writes.Load()
	for range 600 {
		time.Sleep(100 * time.Millisecond)
		if now := s.State(); !now.Degraded || now.Err == nil || !now.Away.Equal(before.Away) {
			t.Fatalf("after a failed write and none that was acknowledged: %+v, and before: %+v", now, before)
		}
	}
	if n := f.writes.Load() - writes; n < 30 || n > 70 {
		t.Errorf("%d writes were tried in a minute: want one every second or two", n)
	}
	f.full.Store(false)
	time.Sleep(4 * time.Second)
	next(t, s)
	if now := s.State(); now.Degraded || !now.Away.IsZero() {
		t.Errorf("after a write was acknowledged: %+v", now)
	}
	closeSeries(t, s)
	if away, back := strings.Count(log.String(), "the store does not answer"), strings.Count(log.String(), "the store answers again"); away != 1 || back != 1 {
		t.Errorf("the log says %d times that the store is away and %d times that it answers: want one of each\n%s", away, back, log.String())
	}
}
