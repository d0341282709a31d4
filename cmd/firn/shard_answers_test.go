//go:build !windows

package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// This file gives firn addresses at which a server answers and is not seen.

// refusing makes a server that asks the roles secret and barred for what they do not have, and
// returns addresses of one of its databases at which it answers with less than its shards.
func refusing(t *testing.T, server *testserver.Server, address string) map[string]string {
	t.Helper()
	onDatabase(t, server.URL(), "CREATE ROLE secret LOGIN SUPERUSER PASSWORD 'right'; CREATE ROLE barred LOGIN")
	onDatabase(t, server.URL(), "CREATE DATABASE other")
	path := one[string](t, server.URL(), "SHOW hba_file")
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("host all secret all scram-sha-256\nhost all barred all reject\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	onDatabase(t, server.URL(), "SELECT pg_reload_conf()")
	await(t, "the password counts", func() bool {
		c, err := pgx.Connect(t.Context(), strings.Replace(address, "//t@", "//secret:WRONG@", 1))
		if err == nil {
			c.Close(t.Context())
		}
		return err != nil
	})
	database := regexp.MustCompile(`/[a-z0-9]+\?`)
	return map[string]string{
		"password authentication failed":    strings.Replace(address, "//t@", "//secret:WRONG@", 1),
		"no such database|does not exist":   database.ReplaceAllString(address, "/nosuch?"),
		"is in no cluster":                  database.ReplaceAllString(address, "/other?"),
		"pg_hba.conf rejects connection":    strings.Replace(address, "//t@", "//barred@", 1),
		"role \"nobody\" does not exist":    strings.Replace(address, "//t@", "//nobody@", 1),
		"server refused TLS connection":     strings.Replace(address, "sslmode=disable", "sslmode=require", 1),
		"server is not in hot standby mode": address + "&target_session_attrs=standby",
	}
}

// offersLoss finds what no hint says of a server that has answered.
var offersLoss = regexp.MustCompile(`--gone|--incomplete|--yes|WRONG|does not answer|has not answered`)

// TestShardsReopenGoneAnswers: a server that answers anything at all is not gone, though --gone says
// so: its shards are opened nowhere else, and programs that reach it go on with them.
func TestShardsReopenGoneAnswers(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := movesServer(t)
	a, b := database(t, server, "a"), database(t, testserver.Shared(t, movesServer), "b")
	right := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string, flags []string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 2 --yes", right)...) // shard 0 is a's
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id())")
	succeed(t, with("move 0 --to b", right)...)
	succeed(t, with("revert 0", right)...)
	enter := func(address string) string {
		return sqlCode(t, address, "INSERT INTO insta0.t SELECT insta0.next_id() WHERE firn.enter(0, (SELECT cluster FROM firn.server)) IS NOT NULL")
	}
	for answer, address := range refusing(t, server, a) {
		wrong := []string{"--server", "a=" + address, "--server", "b=" + b}
		all := []string{"reopen b --shards 0 --gone a --yes", "abort 0 --gone a --yes"}
		if strings.HasPrefix(answer, "password") { // each answer of each command would take minutes
			all = append(all, "reopen b --shards 0", "reopen b --shards 0 --gone a", "reopen b --shards 0 --gone a --dry-run",
				"reopen b --shards 0 --gone a --incomplete --yes", "finish 0 --gone a --yes", "remove-server a --gone a --yes")
		}
		for _, words := range all {
			said := refuse(t, 1, with(words, wrong)...)
			if !regexp.MustCompile(answer).MatchString(said) || !strings.Contains(said, "server a") {
				t.Errorf("firn shard %s does not say that server a answers %q:\n%s", words, answer, said)
			}
			if bad := offersLoss.FindString(said); bad != "" || !strings.Contains(said, "--server a=postgres://USER@HOST/DATABASE") {
				t.Errorf("firn shard %s says %q, or not how to give the address:\n%s", words, bad, said)
			}
		}
		if enter(a) != "" || enter(b) == "" {
			t.Fatalf("%s: a refuses with %q, b with %q", answer, enter(a), enter(b))
		}
	}
}

// TestShardsReopenBackupAnswers: a server's backup is older than the move of a shard to a server that
// runs, and that an address with a wrong password leads to. The backup does not get the shard.
func TestShardsReopenBackupAnswers(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := movesServer(t)
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, server, "b")
	with := func(words, a, b string) []string {
		return append(strings.Fields("shards "+words), "--server", "a="+a, "--server", "b="+b)
	}
	succeed(t, with("init --count 4 --yes", a, b)...)
	own := strings.ToLower(t.Name()) + "a"
	admin, err := pgx.Connect(t.Context(), postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	onDatabase(t, postgres.URL(), "DROP DATABASE IF EXISTS "+own+"bak")
	onDatabase(t, postgres.URL(), "CREATE DATABASE "+own+"bak TEMPLATE "+own)
	for _, name := range []string{own + "bak", own + "old"} {
		t.Cleanup(func() { testdb.Drop(postgres.URL(), name) })
	}
	backup := strings.Replace(a, "/"+own+"?", "/"+own+"bak?", 1)
	succeed(t, with("move 0 --to b", a, b)...)
	succeed(t, with("finish 0 --yes", a, b)...)
	await(t, "the original is renamed", func() bool { // beside which no copy is opened
		_, err := admin.Exec(t.Context(), "ALTER DATABASE "+own+" RENAME TO "+own+"old")
		return err == nil
	})
	for answer, address := range refusing(t, server, b) {
		for _, words := range []string{"reopen a --yes", "reopen a --yes --gone b", "reopen a --gone b --dry-run"} {
			said := refuse(t, 1, with(words, backup, address)...)
			if bad := offersLoss.FindString(said); bad != "" || !regexp.MustCompile(answer).MatchString(said) {
				t.Errorf("firn shard %s says %q, or not %q:\n%s", words, bad, answer, said)
			}
		}
	}
	if sqlCode(t, backup, "SELECT insta0.next_id()") == "" || sqlCode(t, b, "SELECT insta0.next_id()") != "" {
		t.Error("the backup has the shard")
	}
}

// TestShardsStandbyAddress: an address leads to a standby, and the primary serves. Every command says
// so, and how to give the address of the primary; none says to promote the standby, to reopen the
// server, or to type the same again.
func TestShardsStandbyAddress(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := movesServer(t)
	a, b := database(t, server, "a"), database(t, testserver.Shared(t, movesServer), "b")
	with := func(words, a string) []string {
		return append(strings.Fields("shards "+words), "--server", "a="+a, "--server", "b="+b)
	}
	succeed(t, with("init --count 6 --yes", a)...) // 0 to 2 are a's
	succeed(t, with("move 0 --to b", a)...)
	standby := testserver.PostgresStandby(t, server, "max_connections=300", "max_worker_processes=120", "max_wal_senders=100", "max_replication_slots=200", "wal_level=logical")
	copied := strings.Replace(a, server.Addr(), standby.Addr(), 1)
	files := t.TempDir()
	write(t, files, "1_photo.sql", "CREATE TABLE photo (id bigint PRIMARY KEY)")
	for _, words := range []string{
		"doctor", "status", "reopen a", "reopen a --yes", "reopen b --shards 0 --dry-run", "reopen b --shards 1 --yes --incomplete",
		"revert 0", "abort 0", "finish 0 --yes", "move 1 --to b", "rebalance --dry-run", "doctor --clean", "reopen b --shards 0 --yes --gone a",
		"apply --dry-run " + files,
	} {
		out, errs, _ := called(t, with(words, copied)...)
		said := out + errs
		if !strings.Contains(said, "server a: its address leads to a standby") || !strings.Contains(said, "give the address of its primary: --server a=postgres://USER@HOST/DATABASE") {
			t.Errorf("firn shard %s does not say that it is a standby, or what to do:\n%s", words, said)
		}
		if bad := regexp.MustCompile(`promote|firn shard (reopen|revert|abort|finish|move|rebalance)|25006|in progress|--gone|is a copy`).FindString(said); bad != "" {
			t.Errorf("firn shard %s says %q:\n%s", words, bad, said)
		}
		if first, _, _ := strings.Cut(out, "\n"); words == "doctor" && !strings.Contains(first, "standby") {
			t.Errorf("doctor begins with %q", first)
		}
	}
	if sqlCode(t, a, "SELECT insta1.next_id()")+sqlCode(t, b, "SELECT insta0.next_id()") != "" {
		t.Error("the shards are not served any more")
	}
}

// TestShardsReopenRights: a role without the rights that reopen needs is told so before anything is
// taken from a server, with the name of the server and what to do, which works.
func TestShardsReopenRights(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	onDatabase(t, postgres.URL(), "DO $$ BEGIN CREATE ROLE reopener LOGIN CREATEROLE; CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; EXCEPTION WHEN duplicate_object THEN END $$")
	super := []string{database(t, postgres, "a"), database(t, postgres, "b")}
	with := func(words, roleA, roleB string) []string {
		as := func(address, role string) string { return strings.Replace(address, "//t@", "//"+role+"@", 1) }
		return append(strings.Fields("shards "+words), "--server", "a="+as(super[0], roleA), "--server", "b="+as(super[1], roleB))
	}
	for _, address := range super {
		onDatabase(t, address, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO reopener', current_database()); END $$")
	}
	succeed(t, with("init --count 4 --yes", "reopener", "reopener")...)
	onDatabase(t, super[0], promoted)
	terms := func() string {
		return one[string](t, super[1], "SELECT coalesce(string_agg(shard || ':' || term, ' ' ORDER BY shard), '') FROM firn.shard")
	}
	before := terms()
	for _, tt := range []struct{ roleA, roleB, says, do string }{
		{"reader", "reader", "server a: the schema firn belongs to the role reopener, and this is reader", "--server a=postgres://reopener@HOST/DATABASE"},
		{"reopener", "reader", "server b: the schema firn belongs to the role reopener, and this is reader", "--server b=postgres://reopener@HOST/DATABASE"},
		{"reopener", "reopener", "server a: the role reopener may not use the schema insta1, which belongs to the role t", `ALTER SCHEMA "insta1" OWNER TO "reopener"`},
	} {
		if tt.roleB == "reopener" {
			onDatabase(t, super[0], "ALTER SCHEMA insta1 OWNER TO t")
		}
		for _, words := range []string{"reopen a --yes", "reopen a --dry-run"} {
			said := refuse(t, 1, with(words, tt.roleA, tt.roleB)...)
			if !strings.Contains(said, tt.says) || !strings.Contains(said, tt.do) || strings.Contains(said, "run it again") || strings.Contains(said, "42501") {
				t.Errorf("firn shard %s: no %q, or no %q in\n%s", words, tt.says, tt.do, said)
			}
		}
	}
	if now := terms(); now != before {
		t.Errorf("it was refused, and b had %q and has %q", before, now)
	}
	onDatabase(t, super[0], `ALTER SCHEMA "insta1" OWNER TO "reopener"`)
	succeed(t, with("reopen a --yes", "reopener", "reopener")...)
	one[int64](t, super[0], "SELECT insta1.next_id()")
}
