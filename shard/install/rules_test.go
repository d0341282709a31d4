package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/install"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// A rule of the functions in SQL: what a call says, or leaves, in a transaction that is rolled back.
type rule struct {
	name  string
	on    string // the server
	given string // what the transaction does before
	call  string // gives one value
	want  string // the SQLSTATE of the refusal, or the value as a text
}

// A site is one of two databases, a and b, that are servers of a cluster. Shard 0 is on a and in no
// move, shard 1 is ready to change over from a to b, shard 2 has changed over, and b has no
// subscription for shard 3 yet. No mover and no replication is at work: what they do to rows the
// functions are called for.
type site struct {
	name string
	*pgx.Conn
	words *strings.Replacer
}

// tables are what each shard has.
const tables = `
CREATE TABLE insta%[1]d.users (id bigint PRIMARY KEY, name text, number serial);
CREATE TABLE insta%[1]d.events (id bigint, day integer NOT NULL, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE insta%[1]d.events_1 PARTITION OF insta%[1]d.events FOR VALUES FROM (1) TO (10);
CREATE TABLE insta%[1]d.events_2 PARTITION OF insta%[1]d.events DEFAULT;
INSERT INTO insta%[1]d.users (id) SELECT generate_series(1, 500);
`

// runs is a function that runs a statement.
const runs = "CREATE SCHEMA test; CREATE FUNCTION test.run(sql text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE sql; END'; "

// stages makes the two databases.
func stages(t *testing.T) map[string]site {
	t.Helper()
	l := firn.MustLayout("sharded")
	var sql strings.Builder
	if err := install.WriteGenerator(&sql, l); err != nil {
		t.Fatal(err)
	}
	if err := install.WriteMoves(&sql, l); err != nil {
		t.Fatal(err)
	}
	server := testserver.Shared(t, logical)
	all := make(map[string]site)
	for _, name := range []string{"a", "b"} {
		s := site{name, connect(t, testdb.New(t, server, "rules_"+name)), nil}
		s.must(t, sql.String()+runs+"UPDATE firn.server SET cluster = 'rules', name = '"+name+"', servers = '{a,b}', shards = 4, keys = 'none', schemas = 'insta%d'")
		all[name] = s
	}
	a, b := all["a"], all["b"]
	for n := range 4 {
		a.must(t, fmt.Sprintf("SELECT firn.create_shard(%[1]d, 'insta%[1]d');"+tables, n))
		if n > 0 {
			begin(t, a, b, n)
		}
	}
	a.must(t, "SELECT firn.let_go(2, 3, 'k2', 'b', '{}')")
	b.must(t, "INSERT INTO insta2.firn_mark VALUES (3, 'k2', 'b', 7, '{}'); SELECT firn.take(2, 3, 'k2')")
	for name, s := range all {
		other := all[map[string]string{"a": "b", "b": "a"}[name]].Config()
		s.must(t, fmt.Sprintf("SET firn.address = 'host=%s port=%d user=%s dbname=%s sslmode=disable'", other.Host, other.Port, other.User, other.Database))
		s.words = s.replacer(t)
		all[name] = s
	}
	return all
}

// begin brings a shard as far as it comes without replication.
func begin(t *testing.T, a, b site, n int) {
	t.Helper()
	word := fmt.Sprintf("%d, 3, 'k%[1]d'", n)
	batch := fmt.Sprintf("batch000000%d", n)
	a.must(t, fmt.Sprintf("SELECT firn.begin_move(%s, '%s', 'b', true), firn.publish('%[2]s')", word, batch))
	b.must(t, fmt.Sprintf("SELECT firn.claim(%[1]d, 'insta%[1]d', 3, 'k%[1]d', '%[2]s', 'a', 'b', true), firn.begin_load(%[3]s); CREATE SCHEMA insta%[1]d; "+tables+
		"SELECT firn.make_mark('insta%[1]d'); SELECT firn.end_load(%[3]s, 'next_id'); SELECT firn.publish('%[2]s'), firn.empty_publication('%[2]s')", n, batch, word))
	a.must(t, fmt.Sprintf("SELECT firn.note_copied(%s, firn.fingerprint('insta%d', false))", word, n))
}

func logical(tb testing.TB, _ ...string) *testserver.Server {
	return testserver.Postgres(tb, "wal_level=logical", "fsync=off")
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (s site) must(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// replacer has what a site knows of the shards: {1} is what a step of shard 1 begins with, {t1}, {k1}
// and {b1} are its term, attempt and batch.
func (s site) replacer(t *testing.T) *strings.Replacer {
	t.Helper()
	rows, err := s.Query(t.Context(), "SELECT s.shard::text, s.term::text, coalesce(s.attempt, ''), coalesce(m.batch, '') FROM firn.shard AS s LEFT JOIN firn.move AS m ON m.shard = s.shard")
	if err != nil {
		t.Fatal(err)
	}
	var n, term, attempt, batch string
	var words []string
	if _, err := pgx.ForEachRow(rows, []any{&n, &term, &attempt, &batch}, func() error {
		words = append(words, "{"+n+"}", n+", "+term+", '"+attempt+"'", "{t"+n+"}", term, "{k"+n+"}", attempt, "{b"+n+"}", batch)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(words...)
}

// says is what a call says in a transaction that is rolled back.
func (s site) says(t *testing.T, given, call string) (text string) {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	// Without a rule a call may come to no end.
	if _, err := tx.Exec(t.Context(), "SET LOCAL statement_timeout = '20s'; "+s.words.Replace(given), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Errorf("on %s %s: %v", s.name, given, err)
		return ""
	}
	err = tx.QueryRow(t.Context(), "SELECT format('%s', ("+s.words.Replace(call)+"))", pgx.QueryExecModeSimpleProtocol).Scan(&text)
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRules: each function of a step refuses what its rules refuse, and does what it does where
// nothing speaks against it.
func TestRules(t *testing.T) {
	at := stages(t)
	for _, r := range slices.Concat(generatorRules, elsewhere(), stepRules, openingRules) {
		t.Run(r.name, func(t *testing.T) {
			if got := at[r.on].says(t, r.given, r.call); got != at[r.on].words.Replace(r.want) {
				t.Errorf("on %s %s\n%s\nsays %q, not %q", r.on, r.given, r.call, got, r.want)
			}
		})
	}
	t.Run("durably", func(t *testing.T) { durably(t, at) })
	t.Run("in turn", func(t *testing.T) { inTurn(t, at["a"]) })
	t.Run("one by one", func(t *testing.T) { oneByOne(t, at) })
	t.Run("a claim waits", func(t *testing.T) { claimed(t, at["b"]) })
	t.Run("programs wait for an opening", func(t *testing.T) { awaited(t, at["b"]) })
}

// durably: what a step says of a shard is on disk when it is acknowledged.
func durably(t *testing.T, at map[string]site) {
	t.Helper()
	for _, tt := range []struct{ on, given, step string }{
		{"a", "", "firn.close(0)"},
		{"a", "", "firn.open_at(0, 0)"},
		{"a", "", "firn.lock_shard({1})"},
		{"a", "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)"},
		{"b", "", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)"},
		{"b", wordOf1, "firn.take({1})"},
		{"a", onCopy, "firn.record_owner(1, 99, 'b')"},
		{"b", "", "firn.revoke(1, 'insta1', 99, 'a', 98)"},
		{"a", "", "firn.overrule(0, 99, 'b', 98)"},
		{"a", "SELECT firn.close(0)", "firn.reopen(0, s.term, 'closed', s.system, s.timeline, s.incarnation, 99, 0) FROM firn.shard AS s WHERE s.shard = 0"},
	} {
		given := tt.given + "; SET LOCAL synchronous_commit = off; SELECT " + tt.step
		if got := at[tt.on].says(t, given, "current_setting('synchronous_commit')"); got != "on" {
			t.Errorf("%s commits with %q", tt.step, got)
		}
	}
}

// oneByOne: a step waits for another step of the same shard, and goes by what that step has left.
func oneByOne(t *testing.T, at map[string]site) {
	t.Helper()
	const later, opened = "term = 900, attempt = 'another'", "state = 'open'"
	for _, tt := range []struct {
		on, other   string
		shard       int
		given, step string
		want        string
	}{
		{"a", later, 1, "", "firn.cancel_cutover({1})", "ID007"},
		{"a", later, 0, "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)", "ID007"},
		{"b", "state = 'open', term = term + 1, attempt = attempt || '+'", 1, "", "firn.take({1})", "t"},
		{"a", later, 2, "", "firn.record_owner(2, 950, 'b')", "ID007"},
		{"b", later, 1, "", "firn.may_revoke(1, 99, 'a', 98)", "ID007"},
		{"a", later, 0, "", "firn.overrule(0, 99, 'b', 98)", "ID007"},
		{"a", later, 0, "", mayReopen("0, {t0}, 'open', system, timeline, incarnation"), "ID007"},
		{"b", opened, 1, "DELETE FROM firn.move WHERE shard = 1", "firn.drop_copy(1, true)", "ID007"},
		{"b", opened, 3, "", "firn.subscribe('{b3}', 4)", "ID007"},
	} {
		s := at[tt.on]
		var before string
		row := s.QueryRow(t.Context(), fmt.Sprintf("SELECT format('UPDATE firn.shard SET state = %%L, term = %%s, attempt = %%L WHERE shard = %%s', state, term, attempt, shard) FROM firn.shard WHERE shard = %d", tt.shard))
		if err := row.Scan(&before); err != nil {
			t.Fatal(err)
		}
		other := site{s.name, connect(t, s.Config().ConnString()), nil}
		other.must(t, fmt.Sprintf("BEGIN; UPDATE firn.shard SET %s WHERE shard = %d", tt.other, tt.shard))
		said := make(chan string, 1)
		go func() { said <- s.says(t, tt.given, tt.step) }()
		waits := waitsFor(t, other, s)
		other.must(t, "COMMIT")
		if got := <-said; got != tt.want || !waits {
			t.Errorf("%s, while another session sets %s, says %q, and waits for that session: %v", tt.step, tt.other, got, waits)
		}
		other.must(t, before)
	}
}

// claimed: a claim that waits for the row of the move keeps others from the row of the shard. To wait for
// a step that was under way before, its INSERT would be enough.
func claimed(t *testing.T, b site) {
	t.Helper()
	other := site{"b", connect(t, b.Config().ConnString()), nil}
	other.must(t, "BEGIN; SELECT FROM firn.move WHERE shard = 1 FOR UPDATE")
	said := make(chan string, 1)
	go func() { said <- b.says(t, "", "firn.claim(1, 'insta1', 99, 'me', '{b1}', 'a', 'b', true)") }()
	if !waitsFor(t, other, b) {
		t.Error("a claim does not wait for the row of the move")
	}
	third := site{"b", connect(t, b.Config().ConnString()), b.words}
	if got := third.says(t, "", "SELECT shard FROM firn.shard WHERE shard = 1 FOR UPDATE NOWAIT"); got != "55P03" {
		t.Errorf("while a claim waits, another session gets %q of the row of the shard", got)
	}
	other.must(t, "COMMIT")
	if got := <-said; got != "" {
		t.Errorf("the claim says %q", got)
	}
}

// waitsFor says whether the session of a site waits for another one within a second or two.
func waitsFor(t *testing.T, other, s site) (waits bool) {
	t.Helper()
	for begun := time.Now(); !waits && time.Since(begun) < 2*time.Second; {
		if err := other.QueryRow(t.Context(), "SELECT cardinality(pg_blocking_pids($1)) > 0", s.PgConn().PID()).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	return waits
}
