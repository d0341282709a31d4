package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// TestContract has every handle in this process.
func TestContract(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		path := filepath.Join(tb.TempDir(), "ids.db")
		var ahead atomic.Int64
		b := backend(path)
		b.Open = func(tb testing.TB) store.Store {
			s, err := Open(context.Background(), path)
			if err != nil {
				return unopened{err}
			}
			s.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			tb.Cleanup(func() {
				if err := s.Close(); err != nil {
					tb.Error(err)
				}
			})
			return s
		}
		b.Advance = func(_ testing.TB, d time.Duration) { ahead.Add(int64(d)) }
		return b
	})
}

// backend is what is the same wherever the handles are.
func backend(path string) storetest.Backend {
	return storetest.Backend{
		Durable:    true,
		LocalClock: true, NoticesLoss: true,
		Checkpoint: func(tb testing.TB) func() { return checkpoint(tb, path) },
		Remove:     func(tb testing.TB) { remove(tb, path) },
	}
}

// unopened is a handle that could not be opened.
type unopened struct{ err error }

func (u unopened) Get(context.Context, string) (store.Record, error) { return store.Record{}, u.err }

func (u unopened) Put(context.Context, string, []byte, store.Condition) (store.Record, error) {
	return store.Record{}, u.err
}

func (u unopened) List(context.Context, string) ([]store.Record, error) { return nil, u.err }

func (u unopened) Durability(context.Context) (store.Durability, error) {
	return store.Durability{}, u.err
}

// checkpoint copies the records aside and puts them back into the same file, as
// the shell's .restore does.
func checkpoint(tb testing.TB, path string) (restore func()) {
	db := rawDB(tb, path)
	do(tb, db, `DROP TABLE IF EXISTS aside`, `CREATE TABLE aside AS SELECT * FROM record`,
		`DROP TABLE IF EXISTS asidesums`, `CREATE TABLE asidesums AS SELECT sums FROM store`)
	return func() {
		do(tb, db, `BEGIN IMMEDIATE`, `DELETE FROM record`, `INSERT INTO record SELECT * FROM aside`,
			`UPDATE store SET sums = (SELECT sums FROM asidesums)`, `COMMIT`)
	}
}

// rawDB opens the file as somebody else's program would, with one connection.
func rawDB(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", source(path, "mode=rw", "_pragma=busy_timeout(10000)"))
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	tb.Cleanup(func() { db.Close() })
	return db
}

func do(tb testing.TB, db *sql.DB, queries ...string) {
	tb.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(context.WithoutCancel(tb.Context()), q); err != nil {
			tb.Fatalf("%s: %v", q, err)
		}
	}
}
