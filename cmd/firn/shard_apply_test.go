//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
)

// twoServers makes a cluster on two databases, and returns their addresses and what
// --server says of them.
func twoServers(t *testing.T, shards int) (addresses, flags []string) {
	t.Helper()
	server := testserver.Shared(t, testserver.Postgres)
	for _, name := range []string{"a", "b"} {
		address := database(t, server, name)
		addresses = append(addresses, address)
		flags = append(flags, "--server", name+"="+address)
	}
	init := command(t, "none", append([]string{"shard", "init", "--yes", "--count", fmt.Sprint(shards)}, flags...)...)
	if err := init.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &init.errs)
	}
	return addresses, flags
}

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestShardsApplyKilled: killed at any moment, and run again, it has applied each file
// to each shard once.
func TestShardsApplyKilled(t *testing.T) {
	_, flags := twoServers(t, 8)
	dir := writeFiles(t, map[string]string{
		"1.sql": "CREATE TABLE marks (n integer); SELECT pg_sleep(0.02);",
		"2.sql": "INSERT INTO marks VALUES (2); SELECT pg_sleep(0.05); INSERT INTO marks VALUES (2);",
		"3.sql": "-- firn: no transaction\nSELECT pg_sleep(0.02); CREATE INDEX CONCURRENTLY IF NOT EXISTS marks_n ON marks (n)",
		"4.sql": "INSERT INTO marks VALUES (4); SELECT pg_sleep(0.05);",
	})
	args := append([]string{"shard", "apply", dir, "--per-server", "2"}, flags...)
	kills := 0
	for range 8 {
		p := command(t, "none", args...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(rand.N(600*time.Millisecond), func() { p.Process.Kill() })
		if p.code(t); !p.ProcessState.Exited() {
			kills++
		}
		end.Stop()
	}
	last := command(t, "none", args...)
	if err := last.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &last.errs)
	}
	out, err := command(t, "none", append([]string{"shard", "exec", "--csv", "SELECT (SELECT string_agg(n::text, ' ' ORDER BY n) FROM marks), (SELECT string_agg(number::text, ' ' ORDER BY number) FROM firn_applied WHERE applied IS NOT NULL)"}, flags...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "shard,string_agg,string_agg\n"
	for n := range 8 {
		want += fmt.Sprintf("%d,2 2 4,1 2 3 4\n", n)
	}
	if string(out) != want {
		t.Errorf("after %d kills:\n%s", kills, out)
	}
	t.Logf("%d kills", kills)
}

// TestShardsInterrupted: Ctrl-C ends what runs on the servers too.
func TestShardsInterrupted(t *testing.T) {
	addresses, flags := twoServers(t, 2)
	dir := writeFiles(t, map[string]string{"1.sql": "CREATE TABLE t (n integer);\nSELECT pg_sleep(600)"})
	c, err := pgx.Connect(t.Context(), addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	sleeping := func() bool {
		var n int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600)%' AND datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	for _, args := range [][]string{{"apply", dir}, {"exec", "SELECT pg_sleep(600)"}} {
		p := command(t, "none", append(append([]string{"shards"}, args...), flags...)...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
		await(t, "the statement runs", sleeping)
		if err := p.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := p.code(t); code != 130 {
			t.Errorf("%s: exit code %d\n%s", args[0], code, &p.errs)
		}
		if said := p.errs.String(); args[0] == "apply" && (!strings.Contains(said, "firn: interrupted: 0 shards are complete, and 2 left; the same command continues with these\n") || strings.Contains(said, "failed")) {
			t.Errorf("%s says %s", args[0], said)
		}
		await(t, "the statement has ended", func() bool { return !sleeping() })
	}
	var table *string
	if err := c.QueryRow(t.Context(), "SELECT to_regclass('insta0.t')::text").Scan(&table); err != nil || table != nil {
		t.Errorf("what was broken off has left something: %v", err)
	}
}

// TestShardsReopenLate: an answer that took long opens nothing that somebody else has
// opened on another server meanwhile.
func TestShardsReopenLate(t *testing.T) {
	addresses, flags := twoServers(t, 4)
	on := func(i int, sql string) { t.Helper(); onDatabase(t, addresses[i], sql) }
	on(0, "SELECT firn.close(1)")
	cmd := newShardsReopen()
	cmd.SetContext(t.Context())
	cmd.SetErr(io.Discard)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	servers, err := shardServers(cmd)
	if err != nil {
		t.Fatal(err)
	}
	o := shardsReopen{margin: time.Second}
	plan, err := setup.LookReopen(t.Context(), servers, "a", o.options())
	if err != nil || len(plan.Shards) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	var b strings.Builder
	if err := install.WriteShard(&b, firn.Sharded(), install.Definition{Number: 1, Schema: "insta1"}); err != nil {
		t.Fatal(err)
	}
	on(1, b.String())
	if err := o.reopen(t.Context(), cmd, servers, plan); err == nil || !strings.Contains(err.Error(), "somebody else has worked on the shards") {
		t.Errorf("it is open on b, and was opened on a: %v", err)
	}
	on(1, "SELECT firn.close(1); DELETE FROM firn.generator WHERE shard = 1; DELETE FROM firn.shard WHERE shard = 1")
	if err := o.reopen(t.Context(), cmd, servers, plan); err != nil {
		t.Error(err)
	}
	on(1, "UPDATE firn.shard SET timeline = 'FFFFFFFF' WHERE shard = 1")
	for _, want := range []string{"server b was told who serves 1 shard\n", "there is nothing to open on server b\n"} {
		if out := succeed(t, append([]string{"shard", "reopen", "b", "--yes"}, flags...)...); out != want {
			t.Error(out)
		}
	}
}
