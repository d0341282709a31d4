package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const beginMove = "SELECT firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)"

// TestMoveBegins: a shard whose move begins after the plan was made gets no file, and the others do.
func TestMoveBegins(t *testing.T) {
	for _, file := range []string{"CREATE TABLE t (i integer)", "-- firn: no transaction\nCREATE TABLE IF NOT EXISTS t (i integer)"} {
		servers := newServers(t)
		plan := mustPlan(t, servers, mustRead(t, map[string]string{"1.sql": file}))
		do(t, on(t, servers[0]), beginMove)
		for _, r := range plan.Run(t.Context(), servers, nil) {
			if begun := errors.Is(r.Err, ErrMoving); begun != (r.Shard == 0) || !begun && r.Err != nil {
				t.Errorf("shard %d: %v", r.Shard, r.Err)
			}
		}
		if got := texts(t, servers, "SELECT CASE WHEN to_regclass('t') IS NULL THEN 'without' ELSE 'with' END"); got != "without with with with" {
			t.Errorf("%s: %s", file, got)
		}
		plan = mustPlan(t, servers, mustRead(t, map[string]string{"1.sql": file}))
		for _, r := range plan.Run(t.Context(), servers, &Options{Moving: true}) {
			if r.Err != nil {
				t.Errorf("shard %d: %v", r.Shard, r.Err)
			}
		}
		if got := texts(t, servers, "SELECT CASE WHEN to_regclass('t') IS NULL THEN 'without' ELSE 'with' END"); got != "with with with with" {
			t.Errorf("%s with Moving: %s", file, got)
		}
	}
}

// TestMovesDoNotFail: shards in moves do not count as failures, after which no other shard is begun.
func TestMovesDoNotFail(t *testing.T) {
	servers := newServers(t)
	plan := mustPlan(t, servers, mustRead(t, map[string]string{"1.sql": "CREATE TABLE t (i integer)"}))
	do(t, on(t, servers[0]), beginMove)
	if n := len(plan.Run(t.Context(), servers, &Options{MaxFailures: 1, PerServer: 1})); n != 4 {
		t.Errorf("%d shards were begun", n)
	}
}

// TestMoveWaits: a move begins when a file that is being applied is there.
func TestMoveWaits(t *testing.T) {
	servers := newServers(t)
	plan := mustPlan(t, servers, mustRead(t, map[string]string{"1.sql": "CREATE TABLE t (i integer);\nSELECT pg_sleep(2)"}))
	done := make(chan []Result, 1)
	go func() { done <- plan.Run(context.WithoutCancel(t.Context()), servers, nil) }()
	a := on(t, servers[0])
	for sleeping := false; !sleeping; time.Sleep(time.Millisecond) {
		if err := a.QueryRow(t.Context(), "SELECT count(*) > 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'").Scan(&sleeping); err != nil {
			t.Fatal(err)
		}
	}
	do(t, a, "SET lock_timeout = '100ms'")
	_, err := a.Exec(t.Context(), beginMove)
	var locked *pgconn.PgError
	if !errors.As(err, &locked) || locked.Code != "55P03" {
		t.Errorf("a move begins while a file is applied: %v", err)
	}
	for _, r := range <-done {
		if r.Err != nil {
			t.Errorf("shard %d: %v", r.Shard, r.Err)
		}
	}
	do(t, a, beginMove)
	if got := texts(t, servers, "SELECT CASE WHEN to_regclass('t') IS NULL THEN 'without' ELSE 'with' END"); !strings.HasPrefix(got, "with ") {
		t.Error(got)
	}
}
