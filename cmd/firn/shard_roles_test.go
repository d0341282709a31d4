//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/testserver"
)

// rolesServer is apart from the server of other tests: a role that is granted firn_app there is an
// obstacle to each move from it to another server.
func rolesServer(tb testing.TB, _ ...string) *testserver.Server { return movesServer(tb) }

// ownedServers are two servers whose shards belong to a role that is no superuser, as
// docs/guides/shards.md makes it; flags are of that role, and super of a superuser.
func ownedServers(t *testing.T, role string) (flags, super []string) {
	t.Helper()
	server := testserver.Shared(t, rolesServer)
	onDatabase(t, server.URL(), "CREATE ROLE "+role+" LOGIN CREATEROLE")
	for _, name := range []string{"a", "b"} {
		address := database(t, server, name)
		onDatabase(t, address, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "+role+"', current_database()); END $$")
		super = append(super, "--server", name+"="+address)
		flags = append(flags, "--server", name+"="+strings.Replace(address, "postgres://t@", "postgres://"+role+"@", 1))
	}
	succeed(t, append([]string{"shard", "init", "--count", "4", "--yes"}, flags...)...)
	return flags, super
}

// lostWords are about a server that is away.
var lostWords = regexp.MustCompile(`does not answer|do not answer|permanently lost|--gone|\bstart (it|server|the server)`)

// asSuper finds a command that names a superuser.
var asSuper = regexp.MustCompile(`firn (shard [a-z]+( [0-9,-]+)?( --server '?[a-z]=postgres://SUPERUSER@[^' ,;]+'?)+)`)

// TestShardsOtherRole types the commands of docs/reference/shards.md that name a superuser: a move was begun by a superuser, as it has to be before PostgreSQL 16, and
// the owner of the shards looks at it. A right that is missing is not taken for a server that is
// away, and what to type names all servers.
func TestShardsOtherRole(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "otherrole")
	with := func(words string, flags []string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("move 0 --to b", super)...)
	for _, words := range []string{"status", "status --json", "doctor", "doctor --clean", "rebalance --dry-run", "move 0 --to b", "revert 0", "abort 0", "finish 0 --yes"} {
		out, errs, _ := called(t, with(words, flags)...)
		said := out + errs
		if at := lostWords.FindString(said); at != "" {
			t.Errorf("firn shard %s says %q:\n%s", words, at, said)
		}
		if !strings.Contains(said, "a=postgres://SUPERUSER@127.0.0.1:") || !strings.Contains(said, "b=postgres://SUPERUSER@127.0.0.1:") {
			t.Errorf("firn shard %s does not say which role may:\n%s", words, said)
		}
		if failed := "firn shard " + words + " --server a=postgres://otherrole"; strings.Contains(errs, failed) {
			t.Errorf("firn shard %s says to type it again:\n%s", words, said)
		}
		if strings.HasPrefix(words, "status") || words == "doctor" {
			told := asSuper.FindStringSubmatch(said)
			if told == nil {
				t.Errorf("firn shard %s names no command:\n%s", words, said)
				continue
			}
			typed := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(told[1], "'", ""), "SUPERUSER", "t"))
			out, errs, _ := called(t, typed...)
			if strings.Contains(out+errs, "SUPERUSER") || typed[1] == "status" && !strings.Contains(out, "firn shard finish 0 --server ") {
				t.Errorf("%s:\n%s%s", told[0], out, errs)
			}
		}
	}
	// The owner applies files to the other shards, and is told which move keeps them from shard 0.
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE u (n integer)")
	said := refuse(t, 1, with("apply "+dir, flags)...)
	for _, want := range []string{"the move of shard 0 from a to b is not finished, so no file is applied there now; run this again after the move. If no command is at work on it, ", "a=postgres://SUPERUSER@127.0.0.1:", "run it again when the moves are finished", "3 shards are complete"} {
		if !strings.Contains(said, want) {
			t.Errorf("firn shard apply does not say %q:\n%s", want, said)
		}
	}
	if said := refuse(t, 1, with("abort 0", super)...); !strings.Contains(said, "firn: error: shard 0 has moved to b") || !slices.Equal(toldMoves(said), []string{"finish 0", "revert 0"}) {
		t.Errorf("firn shard abort 0 of what has arrived:\n%s", said)
	}
	if said := refuse(t, 1, with("move 0 --to a", super)...); !slices.Equal(toldMoves(said), []string{"revert 0", "finish 0"}) {
		t.Errorf("firn shard move 0 --to a of what has arrived:\n%s", said)
	}
	succeed(t, with("finish 0 --yes", super)...)

	// The owner's commands, with the name of the superuser.
	c := database(t, testserver.Shared(t, movesServer), "c")
	for _, words := range []string{"add-server c=" + c, "remove-server a", "init", "apply " + t.TempDir()} {
		if strings.HasPrefix(words, "apply ") {
			writeFile(t, filepath.Join(strings.Fields(words)[1], "001_t.sql"), "CREATE TABLE t (n integer)")
		}
		out, errs, _ := called(t, with(words, super)...)
		if !strings.Contains(errs, "belong") || !strings.Contains(errs, "a=postgres://otherrole@127.0.0.1:") || !strings.Contains(errs, "b=postgres://otherrole@127.0.0.1:") {
			t.Errorf("firn shard %s as a superuser does not name the owner:\n%s%s", words, out, errs)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// passwordServer starts one that wants passwords of all but t.
func passwordServer(t *testing.T) *testserver.Server {
	t.Helper()
	server := testserver.Postgres(t, "fsync=off")
	path := one[string](t, server.URL(), "SHOW hba_file")
	onDatabase(t, server.URL(), "COPY (VALUES ('host all t 127.0.0.1/32 trust'), ('host all all 127.0.0.1/32 scram-sha-256')) TO '"+path+"'")
	onDatabase(t, server.URL(), "SELECT pg_reload_conf()")
	return server
}

// TestShardsRefusedLogin: a server refuses the connection, which means that it answers. No command
// takes it for one that is away, and each says what the server refuses.
func TestShardsRefusedLogin(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := passwordServer(t)
	onDatabase(t, server.URL(), "CREATE ROLE hasword LOGIN PASSWORD 'right'")
	a, b := database(t, server, "a"), database(t, server, "b")
	succeed(t, "shard", "init", "--count", "4", "--yes", "--server", "a="+a, "--server", "b="+b)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE t (n integer)")
	for _, tt := range []struct{ address, want string }{
		{strings.Replace(b, "postgres://t@", "postgres://hasword:wrong@", 1), "server b: the server refuses the password; check user and password ("},
		{strings.Replace(strings.Replace(b, "postgres://t@", "postgres://hasword:wrong@", 1), "sslmode=disable", "sslmode=prefer", 1), "server b: the server refuses the password; check user and password ("},
		{strings.Replace(b, "loginb?", "nowhere?", 1), "server b: the database does not exist: check its name. Only if no program has used it under another name: CREATE DATABASE ("},
	} {
		for name, all := range downCommands {
			for _, words := range all {
				if name == "add-server" {
					continue // it is about another server
				}
				args := strings.Fields("shards " + strings.NewReplacer("{dir}", dir, "--gone", "").Replace(words))
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "SELECT+1", "SELECT 1")
				}
				out, errs, _ := called(t, append(args, "--server", "a="+a, "--server", "b="+tt.address)...)
				said := out + errs
				if at := lostWords.FindString(said); at != "" {
					t.Errorf("firn shard %s says %q:\n%s", words, at, said)
				}
				asks := name != "sql" && !strings.HasPrefix(words, "where") && name != "adopt"
				if asks && !strings.Contains(said, strings.TrimPrefix(tt.want, "server b: ")) || strings.Contains(said, "tls error") {
					t.Errorf("firn shard %s does not say why:\n%s", words, said)
				}
			}
		}
	}
}

// TestShardsRefusedLoginInMove: one server of a move refuses the password. Nobody is told that the role
// lacks rights: the server and the user are named, and what helps.
func TestShardsRefusedLoginInMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := passwordServer(t)
	onDatabase(t, server.URL(), "CREATE ROLE hasword LOGIN PASSWORD 'right'")
	a, b := database(t, server, "a"), database(t, server, "b")
	succeed(t, "shard", "init", "--count", "4", "--yes", "--server", "a="+a, "--server", "b="+b)
	onDatabase(t, a, "SELECT firn.begin_move(shard, term + 1, 'somebody', '0123456789ab', 'b', true) FROM firn.shard WHERE shard = 0")
	onDatabase(t, a, "UPDATE firn.shard SET state = 'moved', moved_to = 'b' WHERE shard = 0")
	flags := []string{"--server", "a=" + a, "--server", "b=" + strings.Replace(b, "postgres://t@", "postgres://hasword:wrong@", 1)}
	for _, words := range []string{"status", "doctor", "move 0 --to b", "status --json"} {
		out, errs, _ := called(t, append(strings.Fields("shards "+words), flags...)...)
		said := out + errs
		for _, never := range []string{"this role", "with the name of the role", "start the server", "SUPERUSER"} {
			if strings.Contains(said, never) {
				t.Errorf("firn shard %s says %q:\n%s", words, never, said)
			}
		}
		if !strings.Contains(said, "password authentication failed for user") || !strings.Contains(said, "hasword") {
			t.Errorf("firn shard %s does not say what the server refuses:\n%s", words, said)
		}
		if strings.HasPrefix(words, "status") && (!strings.Contains(said, "b refuses the login") || !strings.Contains(said, "correct the password of server b in its address")) {
			t.Errorf("firn shard %s:\n%s", words, said)
		}
	}
}

// TestShardsMoveInterrupted: what a signal leaves is told with commands that can be typed: they have the
// servers of the command. One that comes early is told too.
func TestShardsMoveInterrupted(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)

	c, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec("BEGIN; LOCK TABLE firn.server IN ACCESS EXCLUSIVE MODE")
	for _, words := range []string{"move 1 --to b", "revert 1", "abort 1", "finish 1", "rebalance"} {
		p := command(t, "none", with(words)...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
		await(t, "it waits", func() bool {
			return one[bool](t, b, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '"+strings.ToLower(t.Name())+"a' AND wait_event_type = 'Lock')")
		})
		p.Process.Signal(syscall.SIGINT)
		if code := p.code(t); code != 130 || !strings.Contains(p.errs.String(), "Broken off before anything was begun: nothing has changed.\n") || !strings.Contains(p.errs.String(), "firn shard status --server ") {
			t.Errorf("firn shard %s, interrupted early: exit code %d:\n%s", words, code, &p.errs)
		}
		onDatabase(t, b, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '"+strings.ToLower(t.Name())+"a' AND wait_event_type = 'Lock'")
	}
	exec("ROLLBACK")

	exec("CREATE TABLE insta1.t (id bigint PRIMARY KEY); BEGIN; INSERT INTO insta1.t VALUES (1)")
	p := waitingMove(t, a, with("move 1 --to b"))
	p.Process.Signal(syscall.SIGINT)
	p.code(t)
	said := p.errs.String()
	for _, want := range []string{"firn shard move 1 --to b --server ", "firn shard abort 1 --server "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	// The last line has an end also where it says that a password is not shown.
	flags = []string{"--server", "a=" + strings.Replace(a, "://t@", "://t:secret@", 1), "--server", "b=" + b}
	p = waitingMove(t, a, with("move 1 --to b"))
	p.Process.Signal(syscall.SIGINT)
	p.code(t)
	if said := p.errs.String(); !strings.HasSuffix(said, remedy.MaskedNote+"\n") || strings.Contains(said, "\n"+remedy.MaskedNote) || strings.Contains(said, "secret") {
		t.Errorf("with a password it ends with %q", said[max(0, len(said)-200):])
	}
	exec("COMMIT")
	if out := succeed(t, with("abort 1")...); out != "1 move aborted\n" {
		t.Error(out)
	}
}

// TestShardsNoCluster: what is said of servers that are in no cluster yet names the command that makes
// one, and of a server that is in the cluster, and was not named, what lacks.
func TestShardsNoCluster(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b, c := database(t, postgres, "a"), database(t, postgres, "b"), database(t, postgres, "c")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE t (n integer)")
	for _, words := range []string{"status", "apply " + dir, "apply " + dir + " --dry-run", "move 1 --to b", "revert 1", "abort 1", "finish 1", "rebalance", "doctor", "ls", "ls --map", "where --shard 1", "remove-server a", "add-server c=" + c} {
		out, errs, _ := called(t, with(words)...)
		if !strings.Contains(out+errs, "firn shard init --count N --server a=postgres://t@") && !strings.Contains(out+errs, "firn shard init --count N --server 'a=postgres://t@") {
			t.Errorf("firn shard %s, before there is a cluster, names no way to make one:\n%s%s", words, out, errs)
		}
	}
	succeed(t, with("init --count 4 --yes")...)
	if said := refuse(t, 2, with("add-server c")...); !strings.Contains(said, `"c" has no address: it is NAME=postgres://USER@HOST/DATABASE`) {
		t.Error(said)
	}
	succeed(t, with("add-server c="+c)...)
	if said := refuse(t, 2, with("move 1 --to c")...); !strings.Contains(said, "server c is in the cluster, and its address is not known here") || !strings.Contains(said, "--server c=postgres://USER@HOST/DATABASE") {
		t.Error(said)
	}
	if out, _, code := called(t, with("status")...); code != 3 || !strings.Contains(out, "server c was not asked") || !strings.Contains(out, "--server c=postgres://USER@HOST/DATABASE") {
		t.Error(out)
	}
}

// TestShardsApplyInMove: apply says which moves a file that changes tables gets into the way of.
func TestShardsApplyInMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE t (id bigint PRIMARY KEY)")
	if _, errs, _ := called(t, with("apply "+dir)...); strings.Contains(errs, "warning") {
		t.Error(errs)
	}
	succeed(t, with("move 0-1 --to b")...)
	if _, errs, _ := called(t, with("apply "+dir)...); strings.Contains(errs, "warning") {
		t.Errorf("there is nothing to apply:\n%s", errs)
	}
	writeFile(t, filepath.Join(dir, "002_n.sql"), "ALTER TABLE t ADD n integer")
	for _, words := range []string{"apply " + dir + " --dry-run", "apply " + dir} {
		_, errs, code := called(t, with(words)...)
		if code != map[bool]int{true: 0, false: 1}[strings.HasSuffix(words, "--dry-run")] || !strings.Contains(errs, "firn: warning: the move of shard 0-1 from a to b is not finished, so no file is applied there now; ") || !slices.Equal(toldMoves(errs), []string{"finish 0-1", "revert 0-1"}) {
			t.Errorf("firn shard %s: exit code %d\n%s", words, code, errs)
		}
	}
	if n := one[int64](t, b, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'insta0.t'::regclass AND attname = 'n'"); n != 0 {
		t.Error("a shard in a move got the file")
	}
	if n := one[int64](t, b, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'insta3.t'::regclass AND attname = 'n'"); n != 1 {
		t.Error("the other shards did not get the file")
	}
	succeed(t, with("apply "+dir+" --moving")...)
	if said := refuse(t, 1, with("revert 0")...); !strings.Contains(said, "ID008") {
		t.Error(said)
	}
	succeed(t, with("finish 0-1 --yes")...)
	succeed(t, with("move 0 --to a")...)
	if n := one[int64](t, a, "SELECT count(n) FROM insta0.t"); n != 0 {
		t.Errorf("%d rows", n)
	}

	// Of a move that has not changed over the target lacks what is applied. It says what to do, and no
	// column is lost.
	onDatabase(t, b, "INSERT INTO insta3.t VALUES (1, 2)")
	holder, err := pgx.Connect(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "BEGIN; INSERT INTO insta3.t VALUES (2, 2)", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	p := waitingMove(t, b, with("move 3 --to a"))
	p.Process.Kill()
	p.Wait()
	holder.Close(t.Context())
	writeFile(t, filepath.Join(dir, "003_m.sql"), "ALTER TABLE t ADD m integer DEFAULT 7")
	if _, errs, code := called(t, with("apply "+dir)...); code != 1 || !slices.Contains(toldMoves(errs), "abort 3") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	succeed(t, with("apply "+dir+" --moving")...)
	out, errs, code := called(t, with("move 3 --to a --stall 5s")...)
	t.Logf("%d %s%s", code, out, errs)
	if code == 0 || !slices.Contains(toldMoves(errs), "abort 3") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	succeed(t, with("abort 3")...)
	succeed(t, with("move 3 --to a")...)
	if n := one[int64](t, a, "SELECT m FROM insta3.t"); n != 7 {
		t.Errorf("m is %d", n)
	}
}

// TestShardsReopenRefused: a server that refuses is not gone, whatever --gone says, and what it
// serves is not opened elsewhere.
func TestShardsReopenRefused(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	succeed(t, "shard", "init", "--count", "4", "--yes", "--server", "a="+a, "--server", "b="+b)
	stranger := "b=" + strings.Replace(b, "postgres://t@", "postgres://nobody@", 1)
	for _, more := range [][]string{nil, {"--gone", "b"}, {"--gone", "b", "--shards", "2", "--incomplete"}} {
		out, errs, code := called(t, append([]string{"shard", "reopen", "a", "--yes", "--server", "a=" + a, "--server", stranger}, more...)...)
		if code == 0 || !strings.Contains(errs, "the server refuses this user") {
			t.Errorf("%q: exit code %d\n%s%s", more, code, out, errs)
		}
	}
}

// TestShardsReopenOtherRole: a server is promoted while a move that a superuser began is not
// finished, and the owner reopens it: it is told whose role that takes, and with it all serve.
func TestShardsReopenOtherRole(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "reopenother")
	with := func(words string, flags []string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("move 0 --to b", super)...)
	onDatabase(t, strings.TrimPrefix(super[3], "b="), "UPDATE firn.shard SET timeline = 'FFFFFFFF'")
	out, errs, code := called(t, with("reopen b --yes", flags)...)
	if code == 0 || !strings.Contains(errs, "server b: ") || !strings.Contains(errs, "b=postgres://SUPERUSER@127.0.0.1:") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	succeed(t, with("reopen b --yes", super)...)
	if out, errs, _ := called(t, with("status", super)...); strings.Contains(out+errs, "reopen") {
		t.Errorf("%s%s", out, errs)
	}
}
