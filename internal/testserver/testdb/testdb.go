// Package testdb makes databases for tests on a PostgreSQL server that others use too.
package testdb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// New makes a database with options of CREATE DATABASE, in the place of one of that name, and returns
// its URL. It is dropped when the test ends.
func New(tb testing.TB, server *testserver.Server, name string, options ...string) (url string) {
	tb.Helper()
	if err := Make(tb.Context(), server.URL(), name, options...); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { Drop(server.URL(), name) })
	return URL(server.URL(), name)
}

// URL is that of a database on the server of an administrator's URL.
func URL(server, name string) string {
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

// Make makes a database with options of CREATE DATABASE, in the place of one of that name.
func Make(ctx context.Context, server, name string, options ...string) error {
	return asAdministrator(ctx, server, func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" (FORCE)"); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "CREATE DATABASE "+name+" "+strings.Join(append(options, copied(c)), " "))
		return err
	})
}

// copied has a new database copied as files, which costs half of the processor time that the log of changes does.
// PostgreSQL 14 always does so.
func copied(c *pgx.Conn) string {
	if strings.HasPrefix(c.PgConn().ParameterStatus("server_version"), "14") {
		return ""
	}
	return "STRATEGY file_copy"
}

// dropSubscriptions leaves the slots alone: they may be on a server that is gone.
const dropSubscriptions = `DO $$ DECLARE s name; BEGIN
	FOR s IN SELECT subname FROM pg_subscription AS x JOIN pg_database AS d ON d.oid = x.subdbid AND d.datname = current_database() LOOP
		EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', s);
		EXECUTE format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', s);
		EXECUTE format('DROP SUBSCRIPTION %I', s);
	END LOOP; END $$`

// Drop drops a database with its subscriptions and slots: else a server would begin workers for them
// again and again, which take the CPU and the places of the next test's. A server that its test
// has ended keeps it.
func Drop(server, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = asAdministrator(ctx, server, func(c *pgx.Conn) error {
		if some(ctx, c, "SELECT FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid WHERE d.datname = $1", name) {
			if own, err := pgx.Connect(ctx, URL(server, name)); err == nil {
				_, _ = own.Exec(ctx, dropSubscriptions)
				own.Close(ctx)
			}
		}
		for ctx.Err() == nil && some(ctx, c, "SELECT FROM pg_replication_slots WHERE database = $1", name) {
			_, _ = c.Exec(ctx, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = $1 AND active_pid IS NOT NULL", name)
			if _, err := c.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = $1", name); err != nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
		_, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" (FORCE)")
		return err
	})
}

// some says whether a query gives rows. Where that is not known, it may.
func some(ctx context.Context, c *pgx.Conn, sql string, args ...any) (found bool) {
	err := c.QueryRow(ctx, "SELECT EXISTS ("+sql+")", args...).Scan(&found)
	return found || err != nil
}
