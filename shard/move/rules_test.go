package move

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A rule of the functions in SQL: what a call says, or leaves, in a transaction that is rolled back.
type rule struct {
	name  string
	on    string // the server
	given string // what the transaction does before
	call  string // gives one value
	want  string // the SQLSTATE of the refusal, or the value as a text
}

// staged is a server whose shards are at stages of a move from a to b: shard 0 is in none, shard 1 is
// ready to change over, shard 2 serves on b, and b has no subscription for shard 3 yet.
type staged struct {
	*site
	words *strings.Replacer
}

// stages makes the servers of rules.
func stages(t *testing.T) map[string]staged {
	t.Helper()
	a, b := shops(t, 4)
	ends(t, New(a.Server, hooked(b.Server, hook{before: once(`firn\.lock_tables`, runtime.Goexit)}), hasty()), 1)
	ends(t, New(hooked(a.Server, hook{after: once(`pg_create_logical`, runtime.Goexit)}), b.Server, hasty()), 3)
	mustMove(t, mover(t, a, b).Move, 2)
	a.must(t, "SET firn.address = '"+b.reached()+"'")
	b.must(t, "SET firn.address = '"+a.reached()+"'")
	all := make(map[string]staged)
	for _, s := range []*site{a, b} {
		all[s.Name] = staged{s, s.replacer(t)}
	}
	return all
}

// ends runs a mover that ends where its hook says so.
func ends(t *testing.T, m *Mover, n int64) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Move(t.Context(), []int64{n})
	}()
	<-ended
	m.Close()
}

// replacer has what a site knows of the shards: {1} is what a step of shard 1 begins with, {t1}, {k1}
// and {b1} are its term, attempt and batch.
func (s *site) replacer(t *testing.T) *strings.Replacer {
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
func (s staged) says(t *testing.T, given, call string) (text string) {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if given != "" {
		if _, err := tx.Exec(t.Context(), s.words.Replace(given), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("on %s %s: %v", s.Name, given, err)
			return ""
		}
	}
	err = tx.QueryRow(t.Context(), "SELECT format('%s', ("+s.words.Replace(call)+"))", pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if code := sqlstate(err); code != "" {
		return code
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRules: each function of a step refuses what its rules refuse, and does what it does where
// nothing speaks against it.
func TestRules(t *testing.T) {
	t.Parallel()
	at := stages(t)
	for _, r := range append(slices.Clone(stepRules), openingRules...) {
		if got := at[r.on].says(t, r.given, r.call); got != at[r.on].words.Replace(r.want) {
			t.Errorf("%s: on %s %s\n%s\nsays %q, not %q", r.name, r.on, r.given, r.call, got, r.want)
		}
	}
	durably(t, at)
	oneByOne(t, at)
}

// durably: what a step says of a shard is on disk when it is acknowledged.
func durably(t *testing.T, at map[string]staged) {
	t.Helper()
	for _, tt := range []struct{ on, given, step string }{
		{"a", "", "firn.lock_shard({1})"},
		{"a", "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)"},
		{"b", "", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)"},
		{"b", wordOf1, "firn.take({1})"},
		{"a", onCopy, "firn.record_owner(1, 99, 'b')"},
		{"b", "", "firn.revoke(1, 'insta1', 99, 'a', 98)"},
		{"a", "", "firn.overrule(0, 99, 'b', 98)"},
		{"a", "SELECT firn.close(0)", "firn.reopen(0, s.term, 'closed', s.system, s.timeline, 99, 0) FROM firn.shard AS s WHERE s.shard = 0"},
	} {
		given := tt.given + "; SET LOCAL synchronous_commit = off; SELECT " + tt.step
		if got := at[tt.on].says(t, given, "current_setting('synchronous_commit')"); got != "on" {
			t.Errorf("%s commits with %q", tt.step, got)
		}
	}
}

// oneByOne: a step waits for another step of the same shard, and goes by what that step has left.
func oneByOne(t *testing.T, at map[string]staged) {
	t.Helper()
	const later, opened = "term = 900, attempt = 'another'", "state = 'open'"
	for _, tt := range []struct {
		on, other   string
		shard       int
		given, step string
	}{
		{"a", later, 1, "", "firn.cancel_cutover({1})"},
		{"a", later, 0, "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)"},
		{"b", later, 1, "", "firn.claim(1, 'insta1', 99, 'me', '{b1}', 'a', 'b', true)"},
		{"b", later, 1, "", "firn.take({1})"},
		{"a", later, 2, "", "firn.record_owner(2, 950, 'b')"},
		{"b", later, 1, "", "firn.revoke(1, 'insta1', 99, 'a', 98)"},
		{"a", later, 0, "", "firn.overrule(0, 99, 'b', 98)"},
		{"a", later, 0, "", mayReopen("0, {t0}, 'open', system, timeline")},
		{"b", opened, 1, "DELETE FROM firn.move WHERE shard = 1", "firn.drop_copy(1, true)"},
		{"b", opened, 3, "", "firn.subscribe('{b3}', 4)"},
	} {
		s := at[tt.on]
		before := s.one(t, fmt.Sprintf("SELECT format('UPDATE firn.shard SET state = %%L, term = %%s, attempt = %%L WHERE shard = %%s', state, term, attempt, shard) FROM firn.shard WHERE shard = %d", tt.shard))
		other := dial(t, s.Server.Config.ConnString())
		mustExec(t, other, fmt.Sprintf("BEGIN; UPDATE firn.shard SET %s WHERE shard = %d", tt.other, tt.shard))
		said := make(chan string)
		go func() { said <- s.says(t, tt.given, tt.step) }()
		eventuallyWaits(t, other, s)
		mustExec(t, other, "COMMIT")
		if got := <-said; got != "ID007" {
			t.Errorf("%s, while another session sets %s, says %q", tt.step, tt.other, got)
		}
		mustExec(t, other, before)
	}
}

// eventuallyWaits waits until the session of a site waits for another one.
func eventuallyWaits(t *testing.T, c *pgx.Conn, s staged) {
	t.Helper()
	pid := s.PgConn().PID()
	for waits := false; !waits; {
		if err := c.QueryRow(t.Context(), "SELECT cardinality(pg_blocking_pids($1)) > 0", pid).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}
