package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

var made atomic.Int64

// quick starts a server that need not outlast its machine.
func quick(tb testing.TB, _ ...string) *testserver.Server {
	return testserver.Postgres(tb, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
}

// newServers makes a cluster of four shards on two databases of one server: 0 and 1
// are on a, 2 and 3 on b.
func newServers(t *testing.T) []topology.Server {
	t.Helper()
	shared := testserver.Shared(t, quick)
	templates.once.Do(func() {
		for i, name := range serverNames {
			template(t, shared, i, name)
		}
		templates.made = true
	})
	if !templates.made {
		t.Fatal("another test could not make the databases that are copied")
	}
	var servers []topology.Server
	cluster := fmt.Sprintf("%x%d", time.Now().UnixNano(), made.Add(1))
	for i, name := range serverNames {
		config, err := pgx.ParseConfig(testdb.New(t, shared, fmt.Sprintf("migrate_%s_%s", cluster, name), "TEMPLATE migrate_"+name))
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, topology.Server{Name: name, Config: config})
		do(t, on(t, servers[i]), `SELECT firn.take_incarnation(); UPDATE firn.server SET formerly = '{}', cluster = '`+cluster+`';
			UPDATE firn.shard SET database = current_database(), incarnation = firn.incarnation()`)
	}
	return servers
}

// templates are the databases of a cluster that each test has copies of: to make new ones takes much longer.
var templates struct {
	once sync.Once
	made bool
}

var serverNames = []string{"a", "b"}

// template makes one of them. No session is left in it: a database that has any cannot be copied.
func template(t *testing.T, shared *testserver.Server, i int, name string) {
	t.Helper()
	if err := testdb.Make(t.Context(), shared.URL(), "migrate_"+name); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err := errors.Join(install.WriteGenerator(&b, firn.MustLayout("instagram")), install.WriteMoves(&b, firn.MustLayout("instagram")))
	for n := range 2 {
		number := int64(2*i + n)
		err = errors.Join(err, install.WriteShard(&b, firn.MustLayout("instagram"), install.Definition{Number: number, Schema: schema(number)}))
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "UPDATE firn.server SET name = '%s', shards = 4, keys = 'hash', schemas = 'S''h-%%d'", name)
	c, err := pgx.Connect(t.Context(), testdb.URL(shared.URL(), "migrate_"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	do(t, c, b.String())
}

// schema is a name that has to be quoted.
func schema(n int64) string { return fmt.Sprintf("S'h-%d", n) }

func on(t testing.TB, s topology.Server) *pgx.Conn {
	t.Helper()
	c, err := s.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func do(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// texts asks all shards for one text each.
func texts(t testing.TB, servers []topology.Server, sql string) string {
	t.Helper()
	var all []string
	for i, s := range servers {
		c := on(t, s)
		for n := range 2 {
			do(t, c, fmt.Sprintf("SET search_path = %q", schema(int64(2*i+n))))
			var text *string
			if err := c.QueryRow(context.Background(), sql, pgx.QueryExecModeExec).Scan(&text); err != nil {
				all = append(all, "error")
			} else if text == nil {
				all = append(all, "-")
			} else {
				all = append(all, *text)
			}
		}
	}
	return strings.Join(all, " ")
}

func mustLook(t testing.TB, servers []topology.Server) *State {
	t.Helper()
	s, err := Look(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPlan(t testing.TB, servers []topology.Server, files []File) *Plan {
	t.Helper()
	p, err := NewPlan(mustLook(t, servers), files, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// apply applies files to all shards and returns what failed.
func apply(t testing.TB, servers []topology.Server, files map[string]string, o *Options) map[int64]error {
	t.Helper()
	failed := map[int64]error{}
	for _, r := range mustPlan(t, servers, mustRead(t, files)).Run(t.Context(), servers, o) {
		if r.Err != nil {
			failed[r.Shard] = r.Err
		}
	}
	return failed
}

// mustApply applies files to all shards.
func mustApply(t testing.TB, servers []topology.Server, files map[string]string) {
	t.Helper()
	if failed := apply(t, servers, files, nil); len(failed) > 0 {
		t.Fatal(failed)
	}
}

const (
	users  = "CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id(), name text);\n"
	photos = "CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), owner bigint REFERENCES users);\nINSERT INTO users (name) VALUES ('first');\n"
)

const applied = "SELECT string_agg(number || ':' || (applied IS NOT NULL), ',' ORDER BY number) FROM firn_applied"

func TestApply(t *testing.T) {
	servers := newServers(t)
	files := map[string]string{"001_users.sql": users, "002_photos.sql": photos}
	mustApply(t, servers, files)
	if got := texts(t, servers, "SELECT count(*)::text FROM users"); got != "1 1 1 1" {
		t.Errorf("rows of users: %s", got)
	}
	if got := texts(t, servers, applied); got != "1:true,2:true 1:true,2:true 1:true,2:true 1:true,2:true" {
		t.Errorf("records: %s", got)
	}
	// An id names the shard.
	if got := texts(t, servers, "SELECT (id >> 10 & 8191)::text FROM users"); got != "0 1 2 3" {
		t.Errorf("shards of ids: %s", got)
	}
	if p := mustPlan(t, servers, mustRead(t, files)); len(p.Work) > 0 {
		t.Errorf("a second time there is still %+v", p.Work)
	}
	files["003.sql"] = "ALTER TABLE users ADD email text"
	mustApply(t, servers, files)
	record := mustLook(t, servers).Records[2]
	if len(record) != 3 || record[2].Name != "003.sql" || record[2].Role != "t" || record[2].Applied.IsZero() {
		t.Errorf("records of shard 2: %+v", record)
	}
}

// TestFailure: a file that fails on one shard leaves nothing of itself there, the
// others have it, and it continues where it stopped.
func TestFailure(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1_users.sql": users})
	do(t, on(t, servers[1]), `INSERT INTO "S'h-2".users (name) VALUES ('twice'), ('twice')`)
	files := map[string]string{"1_users.sql": users, "2_unique.sql": "CREATE TABLE early (n int);\n\nALTER TABLE users\n\tADD UNIQUE (name)", "3_later.sql": "CREATE TABLE later (n int)"}
	failed := apply(t, servers, files, nil)
	var at *FileError
	if len(failed) != 1 || !errors.As(failed[2], &at) || at.File != "2_unique.sql" || at.Line != 3 {
		t.Fatalf("failed: %v", failed)
	}
	if want := `2_unique.sql:3: could not create unique index "users_name_key": Key (name)=(twice) is duplicated. (23505)`; at.Error() != want {
		t.Errorf("got %q, want %q", at, want)
	}
	if got := texts(t, servers, "SELECT coalesce(to_regclass('early'), to_regclass('later'))::text"); got != "early early - early" {
		t.Errorf("tables of the file that failed: %s", got)
	}
	do(t, on(t, servers[1]), `DELETE FROM "S'h-2".users`)
	if p := mustPlan(t, servers, mustRead(t, files)); len(p.Work) != 1 || p.Work[0].Shard != 2 || len(p.Work[0].Files) != 2 {
		t.Errorf("left to do: %+v", p.Work)
	}
	mustApply(t, servers, files)
	if got := texts(t, servers, "SELECT to_regclass('later')::text"); got != "later later later later" {
		t.Errorf("tables: %s", got)
	}
}

// TestFailureAtCommit: what fails only at the end of the transaction is the file's fault
// as well, and nothing of it is left.
func TestFailureAtCommit(t *testing.T) {
	servers := newServers(t)
	files := map[string]string{"1.sql": "CREATE TABLE a (n int PRIMARY KEY);\nCREATE TABLE b (n int REFERENCES a DEFERRABLE INITIALLY DEFERRED);\nINSERT INTO b VALUES (7)"}
	for n, err := range apply(t, servers, files, nil) {
		var at *FileError
		if !errors.As(err, &at) || at.File != "1.sql" || at.Line != 3 {
			t.Errorf("shard %d: %v", n, err)
		}
	}
	if got := texts(t, servers, "SELECT coalesce(to_regclass('a'), to_regclass('firn_applied'))::text"); got != "- - - -" {
		t.Errorf("left behind: %s", got)
	}
}

// TestPosition: the line of an error within a statement, after letters of several
// bytes.
func TestPosition(t *testing.T) {
	servers := newServers(t)
	failed := apply(t, servers, map[string]string{"1.sql": "SELECT 1;\n\nSELECT 'größe',\n  1,\n  nothing"}, &Options{PerServer: 1, MaxFailures: 1})
	if len(failed) == 0 || len(failed) > 2 {
		t.Errorf("%d shards failed, where no other is begun after one", len(failed))
	}
	for _, err := range failed {
		if want := `1.sql:5: column "nothing" does not exist (42703)`; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestConflicts(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"2_users.sql": users})
	before := texts(t, servers, applied)
	for _, tt := range []struct {
		files map[string]string
		late  bool
		want  string
	}{
		{map[string]string{"2_users.sql": users + "--"}, false, "2_users.sql was changed after it was applied to shards 0-3"},
		{map[string]string{"2_users.sql": outside + "\n" + users}, false, "2_users.sql was changed after it was applied to shards 0-3"},
		{map[string]string{"3.sql": "SELECT 1"}, false, "2_users.sql was applied to shards 0-3, and is not there"},
		{map[string]string{"1.sql": "SELECT 1", "2_users.sql": users}, false, "1.sql comes late: a file with a higher number was applied to shards 0-3"},
		{map[string]string{"1.sql": "SELECT 1", "2_users.sql": users}, true, ""},
		{map[string]string{"2_people.sql": users}, false, ""}, // another name is no change
	} {
		p, err := NewPlan(mustLook(t, servers), mustRead(t, tt.files), nil, tt.late)
		if got := fmt.Sprint(err); (tt.want != "" || err != nil) && got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.files, got, tt.want)
		}
		if tt.late && (p == nil || len(p.Work) != 4) {
			t.Errorf("%q: %+v", tt.files, p)
		}
	}
	if after := texts(t, servers, applied); after != before {
		t.Errorf("records were %s, and are %s", before, after)
	}
}

// TestConflictElsewhere: who asks for some shards may not give them another text than
// the others have.
func TestConflictElsewhere(t *testing.T) {
	servers := newServers(t)
	only := func(n int64) func(int64) bool { return func(other int64) bool { return other == n } }
	p, err := NewPlan(mustLook(t, servers), mustRead(t, map[string]string{"2.sql": users}), only(1), false)
	if err != nil {
		t.Fatal(err)
	}
	p.Run(t.Context(), servers, nil)
	do(t, on(t, servers[0]), "SELECT firn.close(1)") // that it does not serve is no reason either
	state := mustLook(t, servers)
	_, err = NewPlan(state, mustRead(t, map[string]string{"2.sql": users + photos}), only(3), false)
	if want := "2.sql was changed after it was applied to shard 1"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = NewPlan(state, mustRead(t, map[string]string{"1.sql": "SELECT 1", "2.sql": users}), only(3), false)
	if err != nil {
		t.Errorf("what is in order there is refused: %v", err)
	}
}

// TestChangedMeanwhile: who planned before somebody else applied another text finds
// that out on the shard.
func TestChangedMeanwhile(t *testing.T) {
	servers := newServers(t)
	mine := mustPlan(t, servers, mustRead(t, map[string]string{"1.sql": "CREATE TABLE mine (n int)"}))
	mustApply(t, servers, map[string]string{"1.sql": "CREATE TABLE other (n int)"})
	for i := range mine.Work {
		mine.Work[i].first = false
	}
	for _, r := range mine.Run(t.Context(), servers, nil) {
		var conflict *ConflictError
		if !errors.As(r.Err, &conflict) || conflict.Why != Changed {
			t.Errorf("shard %d: %v", r.Shard, r.Err)
		}
	}
	if got := texts(t, servers, "SELECT to_regclass('mine')::text"); got != "- - - -" {
		t.Errorf("tables: %s", got)
	}
}

// TestTogether: several that apply the same files at once apply each once.
func TestTogether(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1.sql": "CREATE TABLE counts (n int)"})
	files := mustRead(t, map[string]string{"1.sql": "CREATE TABLE counts (n int)", "2.sql": "SELECT pg_sleep(0.02);\nINSERT INTO counts VALUES (1)"})
	done := make(chan []Result)
	var plans []*Plan
	for range 4 {
		plans = append(plans, mustPlan(t, servers, files))
	}
	for _, plan := range plans {
		go func() { done <- plan.Run(context.Background(), servers, nil) }()
	}
	times := map[int64]int{}
	for range 4 {
		for _, r := range <-done {
			if r.Err != nil {
				t.Error(r.Err)
			}
			times[r.Shard]++
		}
	}
	if got := texts(t, servers, "SELECT count(*)::text FROM counts"); got != "1 1 1 1" || times[0] != 4 {
		t.Errorf("rows: %s after %v", got, times)
	}
}

// TestCutOff: a run whose host is cut off between two statements does not keep for long what
// it has locked.
func TestCutOff(t *testing.T) {
	servers := newServers(t)
	c := on(t, servers[0])
	s := &session{conn: c.PgConn(), work: Work{Shard: 0, Schema: schema(0), first: true}, cluster: mustLook(t, servers).Map.Cluster}
	if _, err := s.begin(t.Context(), mustRead(t, map[string]string{"1.sql": users})[0], ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.value(t.Context(), "SHOW idle_in_transaction_session_timeout"); got != "10s" {
		t.Errorf("it keeps it for %s: %v", got, err)
	}
}

// TestLockOrder: locks are taken in one order, however servers are listed.
func TestLockOrder(t *testing.T) {
	servers := newServers(t)
	b, err := install.TakeLock(t.Context(), servers[1])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release(context.Background())
	locked := make(chan error, 1)
	go func() {
		release, err := install.LockAll(t.Context(), []topology.Server{servers[1], servers[0]})
		if err == nil {
			release()
		}
		locked <- err
	}()
	c := on(t, servers[0])
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var n int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 0 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("who waits for b has no lock on a, which whoever has b may wait for next")
		}
	}
	b.Release(t.Context())
	if err := <-locked; err != nil {
		t.Error(err)
	}
}

// TestNotHere: a shard that is closed, or went to another server after the plan was
// made, is not written to.
func TestNotHere(t *testing.T) {
	servers := newServers(t)
	files := mustRead(t, map[string]string{"1_users.sql": users})
	plan := mustPlan(t, servers, files)
	do(t, on(t, servers[0]), "SELECT firn.close(0)")
	do(t, on(t, servers[1]), "SELECT firn.close(2); UPDATE firn.shard SET state = 'moved', moved_to = 'a' WHERE shard = 2")
	failed := map[int64]string{}
	for _, r := range plan.Run(t.Context(), servers, nil) {
		if r.Err != nil {
			failed[r.Shard] = message(r.Err)
		}
	}
	if len(failed) != 2 || !strings.Contains(failed[0], "is closed here") || !strings.Contains(failed[2], "has moved to a") {
		t.Errorf("failed: %v", failed)
	}
	if got := texts(t, servers, "SELECT to_regclass('users')::text"); got != "- users - users" {
		t.Errorf("tables: %s", got)
	}
	again := mustPlan(t, servers, files)
	if len(again.Work) != 0 || len(again.Left) != 2 || again.Left[0].Why != "it is closed on a" {
		t.Errorf("left: %+v", again)
	}
}

// TestRoles: the application's role has its rights on the tables, and may read the
// records but not change them.
func TestRoles(t *testing.T) {
	servers := newServers(t)
	role := fmt.Sprintf("app%d", time.Now().UnixNano())
	do(t, on(t, servers[0]), "CREATE ROLE "+role)
	t.Cleanup(func() {
		for _, s := range servers {
			do(t, on(t, s), "DROP OWNED BY "+role)
		}
		do(t, on(t, servers[0]), "DROP ROLE "+role)
	})
	for _, s := range servers {
		do(t, on(t, s), fmt.Sprintf("ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %s", role))
	}
	mustApply(t, servers, map[string]string{"1_users.sql": users})
	const rights = "SELECT concat_ws(',', has_table_privilege('%[1]s', '%[2]s', 'SELECT'), has_table_privilege('%[1]s', '%[2]s', 'INSERT'), has_table_privilege('%[1]s', '%[2]s', 'DELETE'))"
	if got := texts(t, servers, fmt.Sprintf(rights, role, "users")); got != "t,t,t t,t,t t,t,t t,t,t" {
		t.Errorf("rights on users: %s", got)
	}
	if got := texts(t, servers, fmt.Sprintf(rights, role, "firn_applied")); got != "t,f,f t,f,f t,f,f t,f,f" {
		t.Errorf("rights on firn_applied: %s", got)
	}
	other := servers[0]
	other.Config = other.Config.Copy()
	other.Config.RuntimeParams["role"] = role
	if _, err := Look(t.Context(), []topology.Server{other}); err == nil || !strings.Contains(err.Error(), "the shards belong to the role t, not to "+role) {
		t.Errorf("as another role: %v", err)
	}
}

// TestSettingsEnd: what a file sets does not reach the next file, or shard.
func TestSettingsEnd(t *testing.T) {
	servers := newServers(t)
	failed := apply(t, servers, map[string]string{
		"1.sql": "SET search_path = pg_catalog; SET statement_timeout = '7s'; CREATE TEMPORARY TABLE x (n int)",
		"2.sql": "CREATE TABLE seen AS SELECT current_setting('statement_timeout') AS v, to_regclass('x')::text AS x",
	}, &Options{PerServer: 1, StatementTimeout: 9 * time.Second})
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	if got := texts(t, servers, "SELECT v || coalesce(x, '') FROM seen"); got != "9s 9s 9s 9s" {
		t.Errorf("settings: %s", got)
	}
}

// TestLockTimeout: a file waits for a lock only so long, is tried again, and leaves
// nothing.
func TestLockTimeout(t *testing.T) {
	servers := newServers(t)
	mustApply(t, servers, map[string]string{"1_users.sql": users})
	reader := on(t, servers[0])
	do(t, reader, `BEGIN; SELECT * FROM "S'h-1".users`)
	files := map[string]string{"1_users.sql": users, "2.sql": "ALTER TABLE users ADD n int"}
	failed := apply(t, servers, files, &Options{LockTimeout: time.Millisecond})
	if len(failed) != 1 || !strings.Contains(fmt.Sprint(failed[1]), "2.sql:1: canceling statement due to lock timeout (55P03)") {
		t.Fatalf("failed: %v", failed)
	}
	plan := mustPlan(t, servers, mustRead(t, files))
	done := make(chan []Result)
	go func() { done <- plan.Run(context.Background(), servers, &Options{LockTimeout: 200 * time.Millisecond}) }()
	looker := on(t, servers[0])
	waits := func() (so bool) {
		const waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
		if err := looker.QueryRow(t.Context(), waiting).Scan(&so); err != nil {
			t.Fatal(err)
		}
		return so
	}
	for !waits() {
	}
	for waits() {
	}
	do(t, reader, "COMMIT") // the first try has failed
	for _, r := range <-done {
		if r.Err != nil {
			t.Errorf("with a reader that ends soon: %v", r.Err)
		}
	}
}

// TestUnknown: a connection that is lost at COMMIT is neither a success nor a failure,
// and the next run finds out.
func TestUnknown(t *testing.T) {
	servers := newServers(t)
	failed := apply(t, servers, map[string]string{"1.sql": `
CREATE TABLE users (n int);
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die();
INSERT INTO users VALUES (1);`}, nil)
	for n := range int64(4) {
		if !errors.Is(failed[n], ErrUnknown) {
			t.Errorf("shard %d: %v", n, failed[n])
		}
	}
	mustApply(t, servers, map[string]string{"1.sql": users})
}

func TestAway(t *testing.T) {
	servers := newServers(t)
	plan := mustPlan(t, servers, mustRead(t, map[string]string{"1_users.sql": users}))
	p := testserver.NewProxy(t, fmt.Sprintf("%s:%d", servers[1].Config.Host, servers[1].Config.Port))
	away := slices.Clone(servers)
	config, err := pgx.ParseConfig(strings.Replace(servers[1].Config.ConnString(), fmt.Sprintf(":%d/", servers[1].Config.Port), p.Addr()[strings.LastIndex(p.Addr(), ":"):]+"/", 1))
	if err != nil {
		t.Fatal(err)
	}
	away[1].Config = config
	p.Close()
	if _, err := Look(t.Context(), away); err == nil || !strings.Contains(err.Error(), "server b:") {
		t.Errorf("Look: %v", err)
	}
	results := plan.Run(t.Context(), away, &Options{PerServer: 1})
	if len(results) != 3 || results[0].Err != nil || results[1].Err != nil || results[2].Err == nil {
		t.Errorf("results: %+v", results)
	}
}

func TestDivide(t *testing.T) {
	p := &Plan{Work: []Work{{Shard: 1}, {Shard: 4}, {Shard: 9}}, Left: []Left{{Shard: 2}}}
	for canary, want := range map[int64]string{4: "[4] [1 9]", 7: "[1] [4 9]", 9: "[9] [1 4]"} {
		one, others := p.Divide(canary)
		if got := fmt.Sprint(numbersOf(one), " ", numbersOf(others)); got != want || len(others.Left) != 1 {
			t.Errorf("%d: got %s, want %s", canary, got, want)
		}
	}
	if one, others := (&Plan{}).Divide(0); len(one.Work)+len(others.Work) > 0 {
		t.Errorf("of none: %+v, %+v", one, others)
	}
}

func numbersOf(p *Plan) (numbers []int64) {
	for _, w := range p.Work {
		numbers = append(numbers, w.Shard)
	}
	return numbers
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]int64{"shard 5": {5}, "shards 0-2, 4, 6-7": {0, 1, 2, 4, 6, 7}} {
		if got := Ranges(numbers); got != want {
			t.Errorf("%v: got %s", numbers, got)
		}
	}
}
