package setup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func TestInit(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	servers := serversOf(a, b)
	p := mustInit(t, servers, setup.Wish{Count: 5, Keys: "range:1,11,21,31,41", Roles: []string{"setup_app"}})
	views := map[string]*topology.View{}
	for _, answer := range check.Look(t.Context(), servers) {
		if answer.Err != nil {
			t.Fatal(answer.Err)
		}
		views[answer.Name] = answer.View
	}
	m, err := topology.NewMap(views)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cluster != p.Cluster || len(m.Cluster) != 32 || m.Keys.String() != "range:1,11,21,31,41" || m.Layout != firn.Sharded() || m.Schemas != "insta%d" || !slices.Equal(m.Servers, []string{"a", "b"}) {
		t.Errorf("%+v", m)
	}
	for i, r := range m.Routes {
		// Shard i of 5 is on server i*2/5.
		if want := []string{"a", "a", "a", "b", "b"}[i]; r.Server != want || r.State != topology.StateOpen || r.Why != "" {
			t.Errorf("%+v, want server %s", r, want)
		}
	}
	if len(m.Routes) != 5 {
		t.Errorf("%d routes", len(m.Routes))
	}
	// An application's role draws, and uses the tables that are made from now on.
	b.must(t, "CREATE TABLE insta4.photo (id bigint PRIMARY KEY DEFAULT insta4.next_id(), n serial)")
	login := "login_" + b.Config().Database
	b.must(t, "DROP ROLE IF EXISTS "+login+"; CREATE ROLE "+login+" IN ROLE setup_app; SET ROLE "+login+"; INSERT INTO insta4.photo DEFAULT VALUES")
	if got := b.one(t, "SELECT (firn.decode(id)).shard::text FROM insta4.photo"); got != "4" {
		t.Errorf("an id of shard %s", got)
	}
	b.must(t, "RESET ROLE")
	before := describe(t, a, b)
	again := mustInit(t, servers, setup.Wish{Roles: []string{"setup_app"}})
	if again.Steps() != 0 || !slices.Equal(before, describe(t, a, b)) {
		t.Errorf("the second time there are %d steps", again.Steps())
	}
}

// After an upgrade of firn all functions are written anew, those of each schema too,
// and what ids come next is not touched.
func TestInitRenews(t *testing.T) {
	a := newDatabase(t)
	servers := serversOf(a)
	mustInit(t, servers, setup.Wish{Count: 3})
	a.must(t, "SELECT firn.open(1, firn.now_state() + 1000000000); SELECT firn.close(2)")
	last := a.one(t, "SELECT insta1.next_id()::text")
	before := describe(t, a)
	a.must(t, `UPDATE firn.server SET code = 'another';
		CREATE OR REPLACE FUNCTION insta1.next_ids(n integer) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1';
		CREATE OR REPLACE FUNCTION firn.now_state() RETURNS bigint LANGUAGE sql AS 'SELECT 1'`)
	if p := mustInit(t, servers, setup.Wish{}); p.Steps() != 3 {
		t.Errorf("%d steps", p.Steps())
	}
	if after := describe(t, a); !slices.Equal(before, after) {
		t.Errorf("before and after:\n%s\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if got := a.one(t, "SELECT (insta1.next_id() > "+last+")::text"); got != "true" {
		t.Error("an id below the last")
	}
}

// What is missing of generators is made again, and gives ids above those that were given.
// A schema that is gone is not: an empty one would hide that.
func TestInitMends(t *testing.T) {
	a := newDatabase(t)
	servers := serversOf(a)
	mustInit(t, servers, setup.Wish{Count: 6})
	last := a.one(t, "SELECT greatest(insta0.next_id(), insta1.next_id(), insta2.next_id(), insta3.next_id())::text")
	a.must(t, `ALTER FUNCTION insta0.next_id() RENAME TO gone; DROP SEQUENCE insta1.next_id_counter; DROP SEQUENCE insta2.next_id_offset;
		DROP SEQUENCE insta3.next_id_counter, insta3.next_id_offset; DROP SCHEMA insta4 CASCADE`)
	for _, want := range []int64{4, 0} {
		if p := mustInit(t, servers, setup.Wish{Count: 6}); p.Steps() != want {
			t.Errorf("%d steps, want %d", p.Steps(), want)
		}
	}
	for n := range 4 {
		if got := a.one(t, fmt.Sprintf("SELECT (insta%d.next_id() >> 23 > %s::bigint >> 23)::text", n, last)); got != "true" {
			t.Errorf("shard %d: an id below the last", n)
		}
	}
	if got := a.one(t, "SELECT count(*)::text FROM pg_namespace WHERE nspname = 'insta4'"); got != "0" {
		t.Error("an empty schema is made in the place of the one that is gone")
	}
}

// Wrong input of every kind changes nothing anywhere.
func TestInitRefuses(t *testing.T) {
	a, b, c := newDatabase(t), newDatabase(t), newDatabase(t)
	attempt := func(want string, w setup.Wish, databases ...*database) {
		t.Helper()
		refuses(t, want, func() error { _, err := tryInit(t.Context(), serversOf(databases...), w); return err }, a, b, c)
	}
	attempt("how many shards?", setup.Wish{}, a, b)
	attempt("8193 shards: layout sharded has 1 to 8192", setup.Wish{Count: 8193}, a, b)
	attempt("-1 shards", setup.Wish{Count: -1}, a, b)
	attempt("ended on 2014-11-03", setup.Wish{Count: 2, Layout: firn.MustLayout("instagram;epoch=1980-01-01T00:00:00Z")}, a, b)
	attempt("begins at 2200-01-01", setup.Wish{Count: 2, Layout: firn.MustLayout("sharded;epoch=2200-01-01T00:00:00Z")}, a, b)
	attempt("no datacenter", setup.Wish{Count: 2, Layout: firn.MustLayout("twitter")}, a, b)
	attempt("bounds for 2 shards", setup.Wish{Count: 2, Keys: "range:1"}, a, b)
	attempt(`"%d" once`[1:3], setup.Wish{Count: 2, Schemas: "insta"}, a, b)
	attempt("servers a and b are one database", wish(), a, a)
	attempt("no name for a role", setup.Wish{Count: 2, Roles: []string{"pg_x"}}, a, b)
	attempt("connection refused", wish(), a, &database{url: "postgres://t@127.0.0.1:1/x"})
	b.must(t, "CREATE SCHEMA insta1")
	attempt("there is a schema insta1 already", setup.Wish{Count: 2}, a, b)
	b.must(t, "DROP SCHEMA insta1")
	b.must(t, shardSQL(t, 0))
	attempt("it has shard 0 already", setup.Wish{Count: 2, Layout: firn.MustLayout("instagram")}, a, b)
	attempt("has the layout", setup.Wish{Count: 2}, b)
	attempt("has the layout", setup.Wish{Count: 2, Layout: firn.MustLayout("instagram;epoch=2020-01-01T00:00:00Z")}, b)
	b.must(t, "DROP SCHEMA firn CASCADE; DROP SCHEMA insta0 CASCADE")

	mustInit(t, serversOf(a, b), setup.Wish{Count: 4})
	attempt("count 4, not 5", setup.Wish{Count: 5}, a, b)
	attempt("keys hash, not mod", setup.Wish{Keys: "mod"}, a, b)
	attempt("schema insta%d, not x%d", setup.Wish{Schemas: "x%d"}, a, b)
	attempt("layout time:41@1ms", setup.Wish{Layout: firn.MustLayout("instagram;epoch=2020-01-01T00:00:00Z")}, a, b)
	attempt("server b is in the cluster too", setup.Wish{}, a)
	attempt("server c is not in the cluster", setup.Wish{}, a, b, c)
	attempt("which calls itself b", setup.Wish{}, b, a)
	mustInit(t, serversOf(c), setup.Wish{Count: 1})
	attempt("calls itself a", setup.Wish{}, a, c)
}

// What a role may not do is found before anything is done.
func TestInitRights(t *testing.T) {
	a := newDatabase(t)
	name := a.Config().Database
	nobodyRole, none := "nobody_"+name, "none_"+name
	a.must(t, "DROP ROLE IF EXISTS "+nobodyRole+"; CREATE ROLE "+nobodyRole+" LOGIN; DROP ROLE IF EXISTS "+none)
	nobody := &database{url: strings.Replace(a.url, "t@", nobodyRole+"@", 1)}
	attempt := func(want string) {
		t.Helper()
		refuses(t, want, func() error {
			_, err := tryInit(t.Context(), serversOf(nobody), setup.Wish{Count: 1, Roles: []string{none}})
			return err
		}, a)
	}
	attempt(`GRANT CREATE ON DATABASE "` + name + `" TO "` + nobodyRole + `"`)
	a.must(t, "REVOKE ALL ON DATABASE "+name+" FROM PUBLIC; GRANT CONNECT, CREATE ON DATABASE "+name+" TO "+nobodyRole)
	attempt(`CREATE ROLE "` + none + `" NOLOGIN`)
	a.must(t, "CREATE SCHEMA firn")
	attempt("the schema firn belongs to the role t")
	a.must(t, "DROP SCHEMA firn; CREATE ROLE "+none+"; ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	attempt("read only")
	connect(t, a.url).must(t, "BEGIN READ WRITE; ALTER DATABASE "+name+" RESET default_transaction_read_only; COMMIT")
	mustInit(t, serversOf(nobody), setup.Wish{Count: 1, Roles: []string{none}})
}

// Where functions are kept from PUBLIC by default, the roles of a cluster draw nevertheless,
// and nobody else does.
func TestInitFunctionsNotPublic(t *testing.T) {
	a := newDatabase(t)
	a.must(t, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
	mustInit(t, serversOf(a), setup.Wish{Count: 2, Roles: []string{"setup_app"}})
	login := "login_" + a.Config().Database
	draw := "SELECT count(*)::text FROM (SELECT insta1.next_id() UNION SELECT insta1.next_ids(3)) AS x(id) WHERE (firn.decode(id)).shard = 1 AND id BETWEEN firn.first_id(now() - interval '1 min') AND firn.last_id(now() + interval '1 min')"
	a.must(t, "DROP ROLE IF EXISTS "+login+"; CREATE ROLE "+login+"; GRANT USAGE ON SCHEMA insta1 TO "+login+"; SET ROLE "+login)
	if _, err := a.Exec(t.Context(), "SELECT insta1.next_id()"); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("of a role of no cluster: %v", err)
	}
	a.must(t, "RESET ROLE; GRANT setup_app TO "+login+"; SET ROLE "+login)
	if got := a.one(t, draw); got != "4" {
		t.Errorf("%s ids", got)
	}
	a.must(t, "RESET ROLE")
}

// A standby is refused.
func TestInitStandby(t *testing.T) {
	t.Parallel()
	primary := testserver.Postgres(t)
	standby := testserver.PostgresStandby(t, primary)
	d := connect(t, primary.URL())
	refuses(t, "it is a standby", func() error {
		_, err := tryInit(t.Context(), serversAt(standby.URL()), wish())
		return err
	}, d)
}

// Without a count nothing is made, and what is missing is told.
func TestInitMissing(t *testing.T) {
	a := newDatabase(t)
	servers := serversOf(a)
	mustInit(t, servers, setup.Wish{Count: 3})
	a.must(t, "DELETE FROM firn.generator WHERE shard = 2; DELETE FROM firn.shard WHERE shard = 2; DROP SCHEMA insta2 CASCADE")
	if p := mustInit(t, servers, setup.Wish{}); p.Steps() != 0 || p.Missing != 1 {
		t.Errorf("%d steps, %d missing", p.Steps(), p.Missing)
	}
	if p := mustInit(t, servers, setup.Wish{Count: 3}); p.Steps() != 1 || p.Missing != 0 {
		t.Errorf("%d steps, %d missing", p.Steps(), p.Missing)
	}
}

// A server that has lost what it had is not filled again.
func TestInitForgotten(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	mustInit(t, serversOf(a, b), setup.Wish{Count: 4})
	b.must(t, "DROP SCHEMA firn CASCADE; DROP SCHEMA insta2 CASCADE; DROP SCHEMA insta3 CASCADE")
	refuses(t, "what it had is lost", func() error {
		_, err := tryInit(t.Context(), serversOf(a, b), setup.Wish{Count: 4})
		return err
	}, a, b)
}

// A copy of a server is not added to.
func TestInitCopy(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	mustInit(t, serversOf(a), setup.Wish{Count: 2})
	name, from := b.Config().Database, a.Config().Database
	a.Close(t.Context())
	b.Close(t.Context())
	admin := connect(t, testserver.Shared(t, hasty).URL())
	admin.must(t, "DROP DATABASE "+name)
	admin.must(t, "CREATE DATABASE "+name+" TEMPLATE "+from)
	_, err := tryInit(t.Context(), serversOf(b), setup.Wish{Count: 2})
	var stray *topology.StrayError
	if !errors.As(err, &stray) || stray.Original != from {
		t.Errorf("beside the original: %v", err)
	}
	admin.must(t, "DROP DATABASE "+from)
	_, err = tryInit(t.Context(), serversOf(b), setup.Wish{Count: 2})
	var copied *setup.CopyError
	if !errors.As(err, &copied) || copied.Server != "a" {
		t.Errorf("without the original: %v", err)
	}
}

// Two at once: one does all, or both find the same.
func TestInitTwice(t *testing.T) {
	t.Parallel()
	a, b := newDatabase(t), newDatabase(t)
	servers := serversOf(a, b)
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := tryInit(t.Context(), servers, wish())
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil && !errors.Is(err, install.ErrLocked) {
			t.Error(err)
		}
	}
	checkWhole(t, servers)
}

// checkWhole fails unless each shard of the small cluster is on the server that is
// planned for it, and gives ids.
func checkWhole(t testing.TB, servers []topology.Server) {
	t.Helper()
	p := mustInit(t, servers, wish())
	if p.Steps() != 0 {
		t.Errorf("%d steps were left", p.Steps())
	}
	for i, s := range servers {
		c, err := s.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := &database{Conn: c}
		for n := small * i / len(servers); n < small*(i+1)/len(servers); n++ {
			if got := d.one(t, fmt.Sprintf("SELECT (firn.decode(insta%d.next_id())).shard::text", n)); got != fmt.Sprint(n) {
				t.Errorf("an id of %s in shard %d", got, n)
			}
		}
		c.Close(t.Context())
	}
}

// Whoever has the lock is named.
func TestLocked(t *testing.T) {
	t.Parallel()
	a := newDatabase(t)
	servers := serversOf(a)
	s, err := setup.Open(t.Context(), servers, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = tryInit(t.Context(), servers, wish())
	if !errors.Is(err, install.ErrLocked) || !strings.Contains(err.Error(), "pid ") {
		t.Errorf("%v", err)
	}
	if s, err := setup.Open(t.Context(), servers, false); err != nil { // only to look
		t.Error(err)
	} else {
		s.Close()
	}
}

// A process that is killed at any moment leaves what the next one makes whole, and
// the end is the same as without. make full has more moments.
func TestInitKilled(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	mustInit(t, serversOf(a, b), wish())
	want := describe(t, a, b)
	moments := []string{"SELECT 1 FROM pg_namespace WHERE nspname = 'firn'", "SELECT 1 FROM pg_namespace WHERE nspname = 'insta3'"}
	if testserver.Long() {
		moments = append(moments, "", "SELECT 1 FROM pg_namespace WHERE nspname = 'insta9'") // the empty one is at once
	}
	for _, after := range moments {
		a, b := newDatabase(t), newDatabase(t)
		kill(t, "init", after, a, b)
		servers := serversOf(a, b)
		checkWhole2(t, servers)
		if got := describe(t, a, b); !slices.Equal(got, want) {
			t.Errorf("killed after %q: it differs", after)
		}
	}
}

func checkWhole2(t testing.TB, servers []topology.Server) {
	t.Helper()
	mustInit(t, servers, wish())
	checkWhole(t, servers)
}

// kill runs this binary as a child, and kills it as soon as a query gives a row in the
// first database.
func kill(t testing.TB, what, after string, databases ...*database) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	for _, d := range databases {
		cmd.Args = append(cmd.Args, d.url)
	}
	cmd.Env = append(os.Environ(), inChild+"="+what)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for after != "" && len(databases[0].query(t, strings.Replace(after, "SELECT 1", "SELECT '1'", 1))) == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it could be killed: %v %s", err, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	cmd.Process.Signal(syscall.SIGKILL)
	<-ended
}

// A server that dies midway stops only itself, and is made whole later.
func TestInitServerDies(t *testing.T) {
	t.Parallel()
	dying := testserver.Postgres(t)
	a, b := newDatabase(t), connect(t, dying.URL())
	b.must(t, `CREATE FUNCTION public.midway() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN IF to_regnamespace('insta110') IS NOT NULL THEN PERFORM pg_sleep(600); END IF; END $$;
		CREATE EVENT TRIGGER midway ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.midway()`)
	servers := serversOf(a, b)
	s, err := setup.Open(t.Context(), servers, true)
	if err != nil {
		t.Fatal(err)
	}
	wish := setup.Wish{Count: 120} // 60 to 119 are b's, in transactions of 16
	p, err := s.Init(wish)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	result := make(chan error, 1)
	go func() { result <- p.Run(context.Background(), &done) }()
	midway := func() bool {
		return b.one(t, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != "0" &&
			b.one(t, "SELECT (count(*) >= 16)::text FROM firn.shard") == "true"
	}
	for deadline := time.Now().Add(time.Minute); !midway(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to shard 110")
		}
	}
	dying.Kill(t)
	err = <-result
	s.Close()
	var at *topology.ServerError
	var in *setup.ShardError
	if !errors.As(err, &at) && !errors.As(err, &in) || strings.Contains(err.Error(), "server a") {
		t.Fatalf("%v", err)
	}
	if n := a.one(t, "SELECT count(*)::text FROM firn.shard"); n != "60" {
		t.Errorf("%s shards on the server that lived", n)
	}
	dying.Start(t)
	b = connect(t, dying.URL())
	b.must(t, "DROP EVENT TRIGGER midway")
	mustInit(t, servers, wish)
	if n := b.one(t, "SELECT count(*)::text FROM firn.shard WHERE state = 'open'"); n != "60" {
		t.Errorf("%s shards on the one that died", n)
	}
}

// A shard that cannot be made is named, with what the server said; those before it
// are made.
func TestInitOneFails(t *testing.T) {
	a := newDatabase(t)
	a.must(t, `CREATE FUNCTION public.full() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN IF to_regnamespace('insta7') IS NOT NULL THEN RAISE 'no space left' USING ERRCODE = '53100'; END IF; END $$;
		CREATE EVENT TRIGGER full_disk ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.full()`)
	_, err := tryInit(t.Context(), serversOf(a), wish())
	var in *setup.ShardError
	if !errors.As(err, &in) || in.Shard != 7 || in.Server != "a" || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("%v", err)
	}
	if n := a.one(t, "SELECT count(*)::text FROM firn.shard WHERE shard < 7"); n != "7" {
		t.Errorf("%s shards before it", n)
	}
	a.must(t, "DROP EVENT TRIGGER full_disk")
	checkWhole2(t, serversOf(a))
}

// shardSQL makes a shard in a database that is in no cluster.
func shardSQL(t testing.TB, n int64) string {
	t.Helper()
	var b strings.Builder
	if err := install.WriteSQL(&b, firn.MustLayout("instagram"), install.Definition{Number: n, Schema: fmt.Sprintf("insta%d", n)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAdd(t *testing.T) {
	a, b, c := newDatabase(t), newDatabase(t), newDatabase(t)
	add := func(names []string, databases ...*database) error {
		s, err := setup.Open(t.Context(), serversOf(databases...), true)
		if err != nil {
			return err
		}
		defer s.Close()
		added, err := s.Add(names, nil)
		if err != nil {
			return err
		}
		return added.Run(t.Context())
	}
	refuses(t, "no cluster", func() error { return add([]string{"b"}, a, b) }, a, b)
	mustInit(t, serversOf(a, b), setup.Wish{Count: 2})
	c.must(t, shardSQL(t, 5))
	refuses(t, "it has shard 5 of its own", func() error { return add([]string{"c"}, a, b, c) }, a, b, c)
	c.must(t, "DROP SCHEMA firn CASCADE")
	refuses(t, "is lost, and these schemas make ids with it: insta5", func() error { return add([]string{"c"}, a, b, c) }, a, b, c)
	c.must(t, "DROP SCHEMA insta5 CASCADE")
	// Broken off after the new one: it knows, and the others do not.
	if err := add([]string{"c"}, a, b, c); err != nil {
		t.Fatal(err)
	}
	a.must(t, "UPDATE firn.server SET servers = '{a,b}'")
	b.must(t, "UPDATE firn.server SET servers = '{a,b}'")
	if err := add([]string{"c"}, a, b, c); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*database{a, b, c} {
		if got := d.one(t, "SELECT servers::text FROM firn.server"); got != "{a,b,c}" {
			t.Errorf("servers %s", got)
		}
	}
	if p := mustInit(t, serversOf(a, b, c), setup.Wish{Count: 2}); p.Steps() != 0 {
		t.Errorf("%d steps", p.Steps())
	}
	c.must(t, "DROP SCHEMA firn CASCADE")
	refuses(t, "what it had is lost", func() error { return add([]string{"c"}, a, b, c) }, a, b, c)
}

// TestTooMany: the layout that is offered for more shards has them, as few bits of them as
// that takes, and the life of the usual one.
func TestTooMany(t *testing.T) {
	if life := firn.Sharded().End().Sub(firn.Sharded().Epoch()); life < 60*365*24*time.Hour {
		t.Errorf("the layout of new clusters lasts %s, less than 60 years", life)
	}
	for count, want := range map[int64]string{8193: "14/8", 16384: "14/8", 16385: "15/7", 1 << 21: "21/1"} {
		l := (&setup.TooManyError{Count: count, Layout: firn.Sharded()}).Wider()
		shards, _ := l.Field("shard")
		seq, _ := l.Field("seq")
		if got := fmt.Sprintf("%d/%d", shards.Width, seq.Width); got != want || l.Shards() < count || !l.End().Equal(firn.Sharded().End()) {
			t.Errorf("%d: %s", count, l)
		}
	}
	for _, count := range []int64{-1, 1<<21 + 1} {
		if l := (&setup.TooManyError{Count: count, Layout: firn.Sharded()}).Wider(); l.IsValid() {
			t.Errorf("%d: %s", count, l)
		}
	}
}
