package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// TestShardScripts runs testdata/shards/*.txt: adopt and added ranges of docs/reference/shards.md too. Each script has databases of its own,
// whose addresses are in A to D, and the command sql, which runs a statement on one
// and prints what it gives.
func TestShardScripts(t *testing.T) {
	runShardScripts(t, "testdata/shards", testserver.Shared(t, testserver.Postgres))
}

// TestMoveScripts runs those in which shards move.
func TestMoveScripts(t *testing.T) {
	runShardScripts(t, "testdata/moves", testserver.Shared(t, logical))
}

// TestLongMoveScripts runs those whose rules TestPause of package move and the page of moves hold too.
func TestLongMoveScripts(t *testing.T) {
	testserver.OnlyLong(t)
	runShardScripts(t, "testdata/longmoves", testserver.Shared(t, logical))
}

// logical starts a server from and to which shards can move.
func logical(tb testing.TB, settings ...string) *testserver.Server {
	return testserver.Postgres(tb, append(settings, "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_worker_processes=24", "max_logical_replication_workers=16", "wal_retrieve_retry_interval=100ms")...)
}

func runShardScripts(t *testing.T, dir string, server *testserver.Server) {
	var scripts atomic.Int64
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			script := scripts.Add(1)
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GORACE", raceOptions)
			for _, name := range []string{"A", "B", "C", "D"} {
				database := fmt.Sprintf("firn%d%s", script, strings.ToLower(name))
				if err := testdb.Make(t.Context(), server.URL(), database); err != nil {
					return err
				}
				e.Defer(func() { testdb.Drop(server.URL(), database) })
				e.Setenv(name, testdb.URL(server.URL(), database))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "unset": unset, "sql": runSQL, "load": loadSQL},
	})
}

// loadSQL is "load URL FILE".
func loadSQL(ts *testscript.TestScript, neg bool, args []string) {
	runSQL(ts, neg, []string{args[0], ts.ReadFile(args[1])})
}

// runSQL is "sql URL SQL": it prints each row as a line, and fails with the SQLSTATE.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, args[0])
	ts.Check(err)
	defer c.Close(ctx)
	results, err := c.PgConn().Exec(ctx, args[1]).ReadAll()
	switch {
	case neg && err == nil:
		ts.Fatalf("%s: it does not fail", args[1])
	case neg:
		fmt.Fprintln(ts.Stderr(), err)
		return
	}
	ts.Check(err)
	for _, r := range results {
		for _, row := range r.Rows {
			texts := make([]string, len(row))
			for i, value := range row {
				texts[i] = string(value)
			}
			fmt.Fprintln(ts.Stdout(), strings.Join(texts, " "))
		}
	}
}

// TestSQLWord: a role that GRANT is to be typed with.
func TestSQLWord(t *testing.T) {
	for name, want := range map[string]string{"firn_app": "firn_app", "my-app": `"my-app"`, "App": `"App"`, "1a": `"1a"`, `a"b`: `"a""b"`} {
		if got := sqlWord(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
