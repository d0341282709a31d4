package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// many opens a store with records on several pages.
func many(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i := range 200 {
		if _, err := s.Put(t.Context(), fmt.Sprintf("record/%03d", i), []byte(strings.Repeat("x", 200)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// again writes a record that is there.
func again(t *testing.T, s *sqlite.Store, key string) error {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	if err == nil {
		_, err = s.Put(t.Context(), key, r.Value, store.Condition{Version: r.Version})
	}
	return err
}

// mustNotOpen requires that a file is refused as one that forgot.
func mustNotOpen(t *testing.T, what, path, text string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err == nil {
		s.Close()
	}
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) || !strings.Contains(err.Error(), text) {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestPutBackUnderALog: the log of a process that was killed has the pages of its last write,
// and SQLite lays them over whatever file is there: the newest number of writes over the
// records of a backup.
func TestPutBackUnderALog(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ids.db"
	s := many(t, path)
	backup := contents(t, path)
	for _, key := range []string{"record/000", "record/199"} {
		if err := again(t, s, key); err != nil {
			t.Fatal(err)
		}
	}
	log, newest := contents(t, path+"-wal"), contents(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	killed := func(file []byte) {
		overwrite(t, path, file)
		overwrite(t, path+"-wal", log)
	}
	killed(newest)
	if same, err := sqlite.Open(t.Context(), path); err != nil {
		t.Fatal("nothing was put back:", err)
	} else if err := same.Close(); err != nil {
		t.Fatal(err)
	}
	killed(backup)
	mustNotOpen(t, "at first", path, "do not fit together")
	mustNotOpen(t, "and once more", path, "do not fit together")
	failed := errors.New("the power was cut")
	if err := sqlite.Restored(t.Context(), path, func(*sqlite.Store) error { return failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	mustNotOpen(t, "after a recovery that failed", path, "do not fit together")
	raise := func(s *sqlite.Store) error { return again(t, s, "record/000") }
	if err := sqlite.Restored(t.Context(), path, raise); err != nil {
		t.Fatal(err)
	}
	accepted, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for _, key := range []string{"record/000", "record/100", "record/199"} {
		if err := again(t, accepted, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestPutBackUnderAProcess: a backup is copied over the file while a process writes, and
// that process writes its newer pages over some of the backup's. Whoever comes then is
// handed no record of the backup. make full does it more often.
func TestPutBackUnderAProcess(t *testing.T) {
	t.Parallel()
	times := 4
	if testserver.Long() {
		times = 20
	}
	for range times {
		path := t.TempDir() + "/ids.db"
		s := many(t, path)
		backup := contents(t, path)
		const first, last = "record/000", "record/199"
		if err := again(t, s, first); err != nil {
			t.Fatal(err)
		}
		given, err := s.Get(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan error)
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
					if err := again(t, s, last); err != nil {
						done <- err
						return
					}
				}
			}
		}()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		if _, err := f.WriteAt(backup, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		time.Sleep(20 * time.Millisecond)
		close(stop)
		var forgot *store.ForgotError
		if err := <-done; err != nil && !errors.As(err, &forgot) {
			t.Errorf("the process that runs: %v", err)
		}
		other, err := sqlite.Open(t.Context(), path)
		if err != nil {
			if !errors.As(err, &forgot) {
				t.Errorf("who comes later: %v", err)
			}
			continue
		}
		if r, err := other.Get(t.Context(), first); err == nil && r.Version != given.Version {
			t.Error("a record of the backup was handed out")
		}
		other.Close()
	}
}
