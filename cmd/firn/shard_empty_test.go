//go:build !windows

package main

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsLostEmpty: a server is lost, and its address leads to an empty database that was made in
// its place. The hint of what says that the server is gone can be followed to the end.
func TestShardsLostEmpty(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b, empty := database(t, postgres, "a"), database(t, postgres, "b"), database(t, testserver.Postgres(t, "fsync=off"), "b")
	with := func(words string, servers ...string) []string {
		all := strings.Fields("shards " + words)
		for i, address := range servers {
			all = append(all, "--server", string(rune('a'+i))+"="+address)
		}
		return all
	}
	succeed(t, with("init --count 4 --yes", a, b)...)
	succeed(t, with("move 0-1 --to b", a, b)...)
	succeed(t, with("revert 0", a, b)...)
	for _, words := range []string{"finish 0 --gone b --yes", "reopen a --shards 1 --gone b --incomplete --yes"} {
		said := refuse(t, 1, with(words, a, empty)...)
		if !strings.Contains(said, "if server b is lost, and this database was made in its place: run the same command without the address of server b") {
			t.Errorf("firn shard %s: %s", words, said)
		}
	}
	succeed(t, with("reopen a --shards 1 --gone b --incomplete --yes", a)...)
	one[int64](t, a, "SELECT insta1.next_id()")
}

// TestShardsWrongPassword: the hint about a password names the place that it came from.
func TestShardsWrongPassword(t *testing.T) {
	server := passwordServer(t)
	onDatabase(t, server.URL(), "CREATE ROLE wrongword LOGIN PASSWORD 'right'")
	address := database(t, server, "a")
	succeed(t, "shard", "init", "--count", "2", "--yes", "--server", "a="+address)
	as := func(user *url.Userinfo) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = user
		return "a=" + u.String()
	}
	passfile := t.TempDir() + "/pgpass"
	writeFile(t, passfile, "*:*:*:wrongword:filed\n")
	for _, tt := range []struct {
		user            *url.Userinfo
		env, file, want string
		never           string
	}{
		{url.UserPassword("wrongword", "wrong"), "", "", "correct the password of server a in its address", "pgpass|PGPASSWORD"},
		{url.UserPassword("wrongword", "wrong"), "right", "", "correct the password of server a in its address", "pgpass|PGPASSWORD"},
		{url.User("wrongword"), "wrong", "", "correct the password of server a in PGPASSWORD, which counts more than ~/.pgpass", "set the password"},
		{url.User("wrongword"), "", passfile, "correct the password of server a in ~/.pgpass", "PGPASSWORD"},
		{url.User("wrongword"), "", "/nowhere", "set the password of server a in ~/.pgpass or PGPASSWORD", "correct the password"},
	} {
		t.Setenv("PGPASSWORD", tt.env)
		t.Setenv("PGPASSFILE", tt.file)
		for _, words := range []string{"status", "ls --map", "move 1 --to a"} {
			out, errs, _ := called(t, append(strings.Fields("shards "+words), "--server", as(tt.user))...)
			if said := out + errs; !strings.Contains(said, tt.want) || regexp.MustCompile(tt.never).MatchString(said) {
				t.Errorf("firn shard %s, PGPASSWORD=%s: no %q, or %q in\n%s", words, tt.env, tt.want, tt.never, said)
			}
		}
	}
}

// TestShardsApplyWithoutLost: a server is lost with its shards. Files still come to the shards of the
// other servers, which are named, and it is said which shards get none.
func TestShardsApplyWithoutLost(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 4) // 0 and 1 are a's
	dir := t.TempDir()
	writeFile(t, dir+"/001_t.sql", "CREATE TABLE t (n integer)")
	for _, words := range []string{"apply " + dir, "apply " + dir + " --shards 0-2"} {
		refuse(t, 1, append(strings.Fields("shards "+words), flags[:2]...)...)
	}
	_, errs, code := called(t, append(strings.Fields("shard apply "+dir+" --shards 0-1 --yes"), flags[:2]...)...)
	if code != 0 || !strings.Contains(errs, "servers of the cluster are not named (b): nobody looked at shard 2-3, which gets no file now") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	one[int64](t, addresses[0], "SELECT count(*) FROM insta1.t")
	if said := refuse(t, 2, append([]string{"shard", "apply", dir + "/none"}, flags...)...); !strings.Contains(said, dir+"/none: no such file or directory") {
		t.Error(said)
	}
	if said := refuse(t, 2, append(strings.Fields("shard where --key alice --shard 3"), flags...)...); !strings.Contains(said, "firn shard where --key alice") || !strings.Contains(said, "and only one") {
		t.Error(said)
	}
}
