package sqlite

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// says requires an error that says each of some things.
func says(tb testing.TB, err error, want ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error; it should say %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			tb.Errorf("%v\ndoes not say %q", err, w)
		}
	}
	if errors.Is(err, store.ErrConflict) {
		tb.Errorf("%v is a conflict", err)
	}
}

// works requires that s takes a Put.
func works(tb testing.TB, s *Store) {
	tb.Helper()
	r, err := s.Get(tb.Context(), "works")
	must(tb, err)
	_, err = s.Put(tb.Context(), "works", []byte(`1`), store.Condition{Version: r.Version})
	must(tb, err)
}

// TestUpdateOnSlowDisk: who waits no longer for a disk does not know whether it was written.
func TestUpdateOnSlowDisk(t *testing.T) {
	path, _ := store1(t)
	s := mustOpen(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := make(chan struct{})
	clock, answered := s.now, false
	s.now = func() time.Time { // between f and COMMIT
		if answered {
			cancel()
			select {
			case <-stuck:
			case <-time.After(5 * time.Second):
			}
		}
		return clock()
	}
	start := time.Now()
	tried, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) {
		answered = true
		return []byte(`2`), nil
	})
	close(stuck)
	says(t, err, path, "the disk has not answered")
	if took := time.Since(start); tried.Version == "" || took > 4*time.Second {
		t.Errorf("%+v after %s", tried, took)
	}
}

// TestLocked: somebody has a transaction open.
func TestLocked(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	db := rawDB(t, path)
	do(t, db, "BEGIN IMMEDIATE")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tried, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
	says(t, err, path, "locked by another process")
	if !errors.Is(err, context.DeadlineExceeded) || tried.Version != "" {
		t.Errorf("nothing was sent before the deadline, and yet %+v, %v", tried, err)
	}

	s.patience = 50 * time.Millisecond
	start := time.Now()
	tried, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	says(t, err, path, "locked by another process")
	if took := time.Since(start); took < s.patience || took > 50*s.patience || tried.Version != "" {
		t.Errorf("%+v after %v", tried, took)
	}

	// Reading goes on, and so do new handles.
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := mustOpen(t, path).Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}

	// Whoever waits when the lock goes is served.
	s.patience = time.Minute
	var wg sync.WaitGroup
	wg.Go(func() {
		next, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: r.Version})
		if err != nil || next.Version == "" {
			t.Errorf("%+v, %v", next, err)
		}
	})
	do(t, db, "ROLLBACK")
	wg.Wait()
	works(t, s)
}

// TestLockedExclusive: somebody lets nobody else read either.
func TestLockedExclusive(t *testing.T) {
	path, _ := store1(t)
	db := rawDB(t, path)
	do(t, db, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN IMMEDIATE", "CREATE TABLE t (x)", "COMMIT")
	at, err := locate(path)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = at.attach(ctx)
	says(t, err, path, "locked by another process")
	must(t, db.Close())
	works(t, mustOpen(t, path))
}

// TestCloseWhileWaiting: Close does not wait for somebody else's lock.
func TestCloseWhileWaiting(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	s.patience = time.Hour
	do(t, rawDB(t, path), "BEGIN IMMEDIATE")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			says(t, err, "closed")
		})
	}
	for s.waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	must(t, s.Close())
	wg.Wait()
}

// waiting says whether somebody has the connection that writes.
func (s *Store) waiting() int { return cap(s.write) - len(s.write) }

// TestCorrupt damages the file while nobody has it open.
func TestCorrupt(t *testing.T) {
	path, _ := store1(t)
	b, err := os.ReadFile(path)
	must(t, err)
	for i := 4096; i < len(b); i++ {
		b[i] ^= 0x5a
	}
	must(t, os.WriteFile(path, b, 0o600))
	says(t, openError(path), path, "is damaged", "firn store recover")
	must(t, os.WriteFile(path, b[:4096], 0o600))
	says(t, openError(path), path, "is damaged")
}

// TestLimit meets a limit on the size of the file, as a quota would be.
func TestLimit(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	<-s.write
	c, err := s.connect()
	must(t, err)
	must(t, c.exec("PRAGMA max_page_count = 10"))
	s.write <- c

	value := []byte(`"` + strings.Repeat("x", 1<<15) + `"`)
	_, err = s.Put(t.Context(), "k", value, store.Condition{Version: r.Version})
	says(t, err, path, "disk is full", "free some space")
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	// The connection was given up, and with it the limit.
	_, err = s.Put(t.Context(), "k", value, store.Condition{Version: r.Version})
	must(t, err)
}
