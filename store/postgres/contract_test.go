package postgres

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
	"github.com/firn-id/firn/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) storetest.Backend { return backend(tb, own(tb)) })
}

// TestContractIsolated runs at isolation levels at which the server refuses
// statements because of what others write.
func TestContractIsolated(t *testing.T) {
	testserver.OnlyLong(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			storetest.Run(t, func(tb testing.TB) storetest.Backend {
				return backend(tb, own(tb), "default_transaction_isolation="+level)
			})
		})
	}
}

// TestContractPgBouncer goes through PgBouncer, where each statement may get
// another connection of the server. The search_path is the role's there. The checks that end a statement or a
// transaction early, or hold one open, are in the short form, and some of one statement; make full has all of them.
func TestContractPgBouncer(t *testing.T) {
	pg := testserver.Postgres(t)
	bouncer := testserver.PgBouncer(t, pg, "default_pool_size = 5", "server_check_delay = 0")
	admin := connect(t, pg.URL())
	short := []string{"create", "replace", "list", "values_exact", "cancelled_during", "shaky", "update", "durability"}
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		if !slices.Contains(short, filepath.Base(tb.Name())) {
			testserver.OnlyLong(tb)
		}
		name := fmt.Sprintf("b%d", schemas.Add(1))
		do(tb, admin, `CREATE DATABASE `+name)
		// Not before the end: PgBouncer 1.18 ends where a server's connection that it is cancelling
		// is closed (https://github.com/pgbouncer/pgbouncer/issues/822, mended in 1.19).
		t.Cleanup(func() { do(t, admin, `DROP DATABASE `+name+` WITH (FORCE)`) })
		address := at(tb, inDatabase(tb, bouncer.URL(), name), "default_query_exec_mode=exec")
		return storetest.Backend{
			Durable:    true,
			Open:       func(tb testing.TB) store.Store { return handle(tb, address) },
			Shaky:      func(tb testing.TB) store.Store { return New(connect(tb, shaky(tb, address))) },
			Checkpoint: checkpoint(connect(tb, inDatabase(tb, pg.URL(), name))),
		}
	})
}

// handle has as many connections as a store that firn opens itself.
func handle(tb testing.TB, address string) *Store {
	db := connect(tb, address)
	db.SetMaxOpenConns(4)
	return New(db)
}

// backend is a schema of its own, for connections with these options.
//
// Its clock can be moved: functions of the same name come before the server's own.
func backend(tb testing.TB, address string, options ...string) storetest.Backend {
	name := schemaName()
	admin := connect(tb, at(tb, address, "search_path="+name))
	do(tb, admin, `CREATE SCHEMA `+name, `CREATE TABLE ahead AS SELECT interval '0' AS d`)
	for _, f := range []string{"clock_timestamp", "statement_timestamp"} {
		do(tb, admin, fmt.Sprintf(`CREATE FUNCTION %s() RETURNS timestamptz VOLATILE LANGUAGE sql AS
			'SELECT pg_catalog.%s() + d FROM %s.ahead'`, f, f, name))
	}
	address = at(tb, address, append(options, "search_path="+name+",pg_catalog")...)
	return storetest.Backend{
		Durable:    true,
		Open:       func(tb testing.TB) store.Store { return handle(tb, address) },
		Shaky:      func(tb testing.TB) store.Store { return New(connect(tb, shaky(tb, address))) },
		Checkpoint: checkpoint(admin),
		Advance: func(tb testing.TB, d time.Duration) {
			do(tb, admin, fmt.Sprintf(`UPDATE ahead SET d = d + %d * interval '1 microsecond'`, d.Microseconds()))
		},
	}
}

// checkpoint copies the table aside, and puts it back in place of the one there is,
// as pg_restore --clean does.
func checkpoint(admin *sql.DB) func(testing.TB) func() {
	return func(tb testing.TB) func() {
		do(tb, admin, `CREATE TABLE aside (LIKE firn_records INCLUDING ALL)`, `INSERT INTO aside TABLE firn_records`)
		return func() {
			do(tb, admin, `BEGIN; DROP TABLE firn_records; ALTER TABLE aside RENAME TO firn_records; COMMIT`)
		}
	}
}

// shaky returns address through a proxy that loses requests and replies.
func shaky(tb testing.TB, address string) string {
	return through(tb, address, tabletest.Shaky(tb, host(tb, address), connect(tb, address)).Addr())
}
