package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestNotYetOnStandby: a commit that nobody waits for any more can be seen by
// others on this server, but is not read before the standby has it, as a failover
// would lose it.
func TestNotYetOnStandby(t *testing.T) {
	primary := testserver.Postgres(t)
	db := connect(t, primary.URL())
	s := New(db)
	first := mustPut(t, s, "k", `1`, store.Condition{})
	standby := testserver.PostgresStandby(t, primary)
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	waitFor(t, func() bool {
		p, err := s.Durability(t.Context())
		return err == nil && p.Durable
	})
	do(t, db, `CHECKPOINT`) // a commit waits only when the server's checkpointer, too, has read the setting
	second := mustPut(t, s, "k", `2`, store.Condition{Version: first.Version})

	standby.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	third, err := s.Put(ctx, "k", []byte(`3`), store.Condition{Version: second.Version})
	says(t, "Put", err, "not answered in time")
	var version string
	waitFor(t, func() bool {
		err := db.QueryRow(`SELECT version FROM firn_records WHERE key = 'k'`).Scan(&version)
		return err == nil && version == string(third.Version) // the driver had the wait cancelled
	})
	for what, read := range map[string]func(context.Context) error{
		"Get":  func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"List": func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
		"none": func(ctx context.Context) error { _, err := s.Get(ctx, "none"); return err },
		"Get, refused at the connection's isolation level,": func(ctx context.Context) error {
			_, err := s.readCommitted(ctx, sqlGet, "k")
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s reads what a failover would lose: %v", what, err)
		}
	}

	primary.Kill(t)
	standby.Start(t)
	standby.Promote(t)
	do(t, connect(t, standby.URL()), `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	got, err := New(connect(t, standby.URL())).Get(t.Context(), "k")
	if err != nil || got.Version != second.Version {
		t.Errorf("after the failover: %+v, %v", got, err)
	}
}

// TestWaitCancelled: a driver may end a call by having the server cancel the statement,
// as lib/pq does. Where that is a commit that waits for a standby the server answers as
// if it had not been, and no standby has it.
func TestWaitCancelled(t *testing.T) {
	server := testserver.Postgres(t)
	db := connect(t, server.URL())
	good := New(db)
	r := mustPut(t, good, "k", `1`, store.Condition{})
	config, err := pgx.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Minute}
	}
	cancels := stdlib.OpenDB(*config)
	defer cancels.Close()
	s := New(cancels)
	do(t, db, `CREATE TABLE probe (n int)`, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	waitFor(t, func() bool { // a commit waits only when the server's checkpointer, too, has read the setting
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := db.ExecContext(ctx, `INSERT INTO probe VALUES (1)`)
		return err != nil
	})
	for _, x := range []struct {
		name string
		call func(context.Context) (store.Record, error)
	}{
		{"Put", func(ctx context.Context) (store.Record, error) {
			return s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
		}},
		{"Update", func(ctx context.Context) (store.Record, error) { return s.Update(ctx, "k", tabletest.To2) }},
		{"Get", func(ctx context.Context) (store.Record, error) { return s.Get(ctx, "k") }},
		{"Get, refused at the connection's isolation level,", func(ctx context.Context) (store.Record, error) {
			_, err := s.readCommitted(ctx, sqlGet, "k")
			return store.Record{}, err
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := x.call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s takes what no standby has for acknowledged: %+v, %v", x.name, got, err)
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute")
		}
	}
}
