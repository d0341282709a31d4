package shard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

// Servers are the databases of a cluster, by name. Each knows all shards, and has those
// that it owns open: the first the first few, and so on. Each shard has a table item.
type servers map[string]*database

const itemTable = "CREATE TABLE insta%[1]d.item (id bigint PRIMARY KEY DEFAULT insta%[1]d.next_id(), text text NOT NULL DEFAULT ''); GRANT ALL ON insta%[1]d.item TO app;"

// newServers makes a cluster on databases of the shared server.
func newServers(t testing.TB, keys string, count int, names ...string) servers {
	t.Helper()
	all := make(servers)
	for i, name := range names {
		all[name] = copiedServer(t)
		all.fill(t, name, keys, count, func(n int) bool { return n*len(names)/count == i })
	}
	return all
}

// blank is a database of the shared server with all functions and no shard. Each server of a cluster is a copy of it: to
// make the functions anew takes much longer.
var blank struct {
	once sync.Once
	made bool
}

// copiedServer is a database of its own with all functions.
func copiedServer(t testing.TB) *database {
	t.Helper()
	server := testserver.Shared(t, testserver.Postgres)
	blank.once.Do(func() {
		if err := testdb.Make(t.Context(), server.URL(), "shard_blank"); err != nil {
			t.Fatal(err)
		}
		c, err := pgx.Connect(t.Context(), testdb.URL(server.URL(), "shard_blank"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background()) // one that has a session cannot be copied
		mustExec(t, c, functions(t))
		blank.made = true
	})
	if !blank.made {
		t.Fatal("another test could not make the database that is copied")
	}
	db := openDatabase(t, testdb.New(t, server, fmt.Sprintf("shard%d", made.Add(1)), "TEMPLATE shard_blank"))
	mustExec(t, db.Conn, "SELECT firn.take_incarnation(); UPDATE firn.server SET formerly = '{}'")
	return db
}

// functions makes the functions of a server of a cluster, and the role of applications.
func functions(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;\n")
	if err := errors.Join(install.WriteGenerator(&b, firn.MustLayout("instagram")), install.WriteGrants(&b, "app")); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// make makes one server, whose shards are some of the cluster's.
func (all servers) make(t testing.TB, name, keys string, count int, owns func(n int) bool) {
	t.Helper()
	mustExec(t, all[name].Conn, functions(t))
	all.fill(t, name, keys, count, owns)
}

// fill makes the shards of a server that has the functions.
func (all servers) fill(t testing.TB, name, keys string, count int, owns func(n int) bool) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "UPDATE firn.server SET cluster = 'c0ffee', name = '%s', shards = %d, keys = '%s', schemas = 'insta%%d';\n", name, count, keys)
	for n := range count {
		if !owns(n) {
			fmt.Fprintf(&b, "INSERT INTO firn.shard (shard, schema, state, term) VALUES (%d, 'insta%d', 'closed', 0);\n", n, n)
		}
		s := insta(int64(n))
		s.Roles = []string{"app"}
		if err := install.WriteShard(&b, firn.MustLayout("instagram"), s); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, itemTable, n)
	}
	mustExec(t, all[name].Conn, b.String())
}

// asApp is the URL of a database for the role that applications have.
func asApp(url string) string { return strings.Replace(url, "//t@", "//app@", 1) }

// pool is a pool of a program's.
func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// pools are those of a program, of some servers or of all.
func (all servers) pools(t testing.TB, names ...string) map[string]*pgxpool.Pool {
	t.Helper()
	if names == nil {
		names = slices.Collect(maps.Keys(all))
	}
	pools := make(map[string]*pgxpool.Pool)
	for _, name := range names {
		pools[name] = pool(t, asApp(all[name].url))
	}
	return pools
}

// openCluster opens a cluster, which waits for as long as a busy machine may take.
func openCluster(t testing.TB, pools map[string]*pgxpool.Pool, o *shard.Options) *shard.Cluster {
	t.Helper()
	if o == nil {
		o = &shard.Options{Wait: time.Minute}
	}
	c, err := shard.Open(t.Context(), pools, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// move moves a shard and its rows by hand: a fence that names the new server, the
// generator and the row closed, the rows copied, opened above all that was drawn.
func (all servers) move(t testing.TB, n int, from, to string) {
	t.Helper()
	above := all.leave(t, n, from, to)
	all.arrive(t, n, from, to, above)
}

// leave is the first half of a move: the shard is nowhere after it.
func (all servers) leave(t testing.TB, n int, from, to string) (above int64) {
	t.Helper()
	mustExec(t, all[to].Conn, fmt.Sprintf("UPDATE firn.shard SET state = 'closed', moved_to = NULL WHERE shard = %d", n))
	mustExec(t, all[from].Conn, fmt.Sprintf(`
		CREATE OR REPLACE FUNCTION insta%[1]d.fence() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE 'fenced' USING ERRCODE = 'ID002', DETAIL = '%[2]s'; END $$;
		BEGIN;
		CREATE TRIGGER fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON insta%[1]d.item EXECUTE FUNCTION insta%[1]d.fence()`, n, to))
	above = query[int64](t, all[from].Conn, fmt.Sprintf("SELECT firn.close(%d)", n))
	mustExec(t, all[from].Conn, fmt.Sprintf("UPDATE firn.shard SET state = 'moved', moved_to = '%s' WHERE shard = %d; COMMIT", to, n))
	return above
}

func (all servers) arrive(t testing.TB, n int, from, to string, above int64) {
	t.Helper()
	rows, err := all[from].Query(t.Context(), fmt.Sprintf("SELECT id, text FROM insta%d.item", n))
	if err != nil {
		t.Fatal(err)
	}
	items, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, all[to].Conn, fmt.Sprintf("BEGIN; DROP TRIGGER IF EXISTS fence ON insta%[1]d.item; TRUNCATE insta%[1]d.item", n))
	if _, err := all[to].CopyFrom(t.Context(), pgx.Identifier{fmt.Sprintf("insta%d", n), "item"}, []string{"id", "text"}, pgx.CopyFromRows(items)); err != nil {
		t.Fatal(err)
	}
	// The target's term is above the one at which the source let the shard go.
	term := query[int64](t, all[from].Conn, fmt.Sprintf("SELECT term FROM firn.shard WHERE shard = %d", n))
	mustExec(t, all[to].Conn, fmt.Sprintf("UPDATE firn.shard SET state = 'closed', term = %d WHERE shard = %d; SELECT firn.open(%[2]d, %d); COMMIT", term, n, above))
}

// insert puts a row into the shard's table, and returns its id.
func insert(ctx context.Context, s shard.Shard, text string) (id firn.ID, err error) {
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "INSERT INTO item (text) VALUES ($1) RETURNING id", text).Scan(&id)
	})
	return id, err
}

func mustInsert(t testing.TB, s shard.Shard, text string) firn.ID {
	t.Helper()
	id, err := insert(t.Context(), s, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// textOf is what the row of an id says, found by the id alone.
func textOf(t testing.TB, c *shard.Cluster, id firn.ID) (text string) {
	t.Helper()
	err := c.ForID(id).InTx(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT text FROM item WHERE id = $1", id).Scan(&text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// whereIs is the database in which a transaction on a shard runs.
func whereIs(t testing.TB, s shard.Shard) (name string) {
	t.Helper()
	err := s.InTx(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT current_database()").Scan(&name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// nothing is a transaction that does nothing.
func nothing(pgx.Tx) error { return nil }

// failsWith fails unless err has an SQLSTATE and says all of some words.
func failsWith(t testing.TB, err error, sqlstate string, words ...string) {
	t.Helper()
	var e *pgconn.PgError
	if sqlstate != "" && (!errors.As(err, &e) || e.Code != sqlstate) {
		t.Fatalf("%v, want SQLSTATE %s", err, sqlstate)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestCluster(t *testing.T) {
	all := newServers(t, "hash", 4, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	for _, key := range []string{"alice", "bob", "", "каждый", "\xff\x00"} {
		id := mustInsert(t, c.ForKey(key), "of "+strings.ToValidUTF8(strings.ReplaceAll(key, "\x00", ""), ""))
		if c.ForID(id) != c.ForKey(key) {
			t.Errorf("%q: written on %v, and its id is of %v", key, c.ForKey(key), c.ForID(id))
		}
	}
	id := mustInsert(t, c.ForNumber(42), "of a number")
	if got := textOf(t, c, id); got != "of a number" || c.ForNumber(42) != c.ForKey("42") {
		t.Errorf("%q", got)
	}
	for n := range int64(4) {
		want := all["a"].Config().Database
		if n >= 2 {
			want = all["b"].Config().Database
		}
		if got := whereIs(t, c.Shard(n)); got != want {
			t.Errorf("shard %d is in %s, want %s", n, got, want)
		}
	}
	var numbers []int64
	for s := range c.All() {
		numbers = append(numbers, s.Number())
	}
	if !slices.Equal(numbers, []int64{0, 1, 2, 3}) {
		t.Errorf("all: %v", numbers)
	}
}

// TestNoSuchShard: what there is not says so, and does nothing.
func TestNoSuchShard(t *testing.T) {
	all := newServers(t, "mod", 2, "a")
	c := openCluster(t, all.pools(t), nil)
	other, err := firn.MustLayout("instagram").Encode(firn.Parts{Time: time.Now(), Shard: 77})
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]shard.Shard{
		"there is no such shard: 2":    c.Shard(2),
		"there is no such shard: 77":   c.ForID(other),
		"there is no such shard: 8192": c.Shard(8192),
		"there is no such shard: -1":   c.Shard(-1),
		"no id of layout instagram":    c.ForID(-7),
		"0 is no id":                   c.ForID(0),
	} {
		err := s.InTx(t.Context(), func(pgx.Tx) error { t.Error("it ran"); return nil })
		if !errors.Is(err, shard.ErrNoShard) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	for _, s := range []shard.Shard{c.ForKey("alice"), c.ForKey("07"), c.ForKey(""), c.ForNumber(-1)} {
		var e *topology.KeyError
		if err := s.InTx(t.Context(), nothing); !errors.As(err, &e) {
			t.Errorf("%v, want a KeyError", err)
		}
	}
	failsWith(t, shard.Shard{}.InTx(t.Context(), nothing), "", "zero Shard")
	groups := c.Group([]firn.ID{other, 5})
	if len(groups) != 2 {
		t.Errorf("%v", groups)
	}
}

func TestGroup(t *testing.T) {
	all := newServers(t, "mod", 4, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	var ids []firn.ID
	for i := range 12 {
		ids = append(ids, mustInsert(t, c.ForNumber(int64(i)), ""))
	}
	groups := c.Group(ids)
	for n := range int64(4) {
		if got, want := groups[c.Shard(n)], []firn.ID{ids[n], ids[n+4], ids[n+8]}; !slices.Equal(got, want) {
			t.Errorf("shard %d: %v, want %v", n, got, want)
		}
	}
}

// TestOpenRefuses: a cluster is not opened with servers that are not one.
func TestOpenRefuses(t *testing.T) {
	all := newServers(t, "hash", 2, "a", "b")
	other := newServers(t, "hash", 2, "c")
	mustExec(t, other["c"].Conn, "UPDATE firn.server SET cluster = 'decaf'")
	p := all.pools(t)
	empty := pool(t, newDatabase(t).url)
	nobody := pool(t, "postgres://app@127.0.0.1:1/x?connect_timeout=2")
	for _, tt := range []struct {
		pools map[string]*pgxpool.Pool
		words []string
	}{
		{nil, []string{"no server"}},
		{map[string]*pgxpool.Pool{"a": nil}, []string{"a has no pool"}},
		{map[string]*pgxpool.Pool{"a b": p["a"]}, []string{`server "a b"`}},
		{map[string]*pgxpool.Pool{"a": p["b"], "b": p["a"]}, []string{"calls itself", "exchanged"}},
		{map[string]*pgxpool.Pool{"a": p["a"], "c": pool(t, asApp(other["c"].url))}, []string{"different clusters"}},
		{map[string]*pgxpool.Pool{"a": empty}, []string{"server a", "in no cluster"}},
		{map[string]*pgxpool.Pool{"a": nobody}, []string{"server a", "refused"}},
	} {
		_, err := shard.Open(t.Context(), tt.pools, nil)
		failsWith(t, err, "", tt.words...)
	}
}

// TestServerAway: a server that does not answer when a cluster is opened takes nothing
// from the others, and is used when it is back.
func TestServerAway(t *testing.T) {
	all := newServers(t, "mod", 2, "a", "b")
	proxy := testserver.NewProxy(t, testserver.Shared(t, testserver.Postgres).Addr())
	proxy.Refuse(true)
	p := all.pools(t, "a")
	p["b"] = pool(t, asApp(strings.Replace(all["b"].url, testserver.Shared(t, testserver.Postgres).Addr(), proxy.Addr(), 1)))
	c := openCluster(t, p, &shard.Options{Wait: 300 * time.Millisecond})
	mustInsert(t, c.Shard(0), "")
	// Server a knows shard 1, as closed there.
	failsWith(t, c.Shard(1).InTx(t.Context(), nothing), "ID001")
	if n := len(slices.Collect(c.All())); n != 2 {
		t.Errorf("%d shards", n)
	}
	mustExec(t, all["a"].Conn, "DELETE FROM firn.generator WHERE shard = 1; DELETE FROM firn.shard WHERE shard = 1")
	c = openCluster(t, p, &shard.Options{Wait: 300 * time.Millisecond})
	failsWith(t, c.Shard(1).InTx(t.Context(), nothing), "", "on no server", "server b", "refused")
	if n := len(slices.Collect(c.All())); n != 2 {
		t.Errorf("%d shards: one that may be on the server that is away is left out", n)
	}
	proxy.Refuse(false)
	c2 := openCluster(t, p, nil)
	mustInsert(t, c2.Shard(1), "")
	eventually(t, func() error { return c.Shard(1).InTx(t.Context(), nothing) })
}

// eventually calls f until it gives no error.
func eventually(t testing.TB, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
