package setup_test

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
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// TestReopen promotes a standby while its primary lives on: nothing is opened while
// the primary may serve, and what is opened then is above all that it gave.
func TestReopen(t *testing.T) {
	primary := testserver.Postgres(t, "wal_level=replica", "max_wal_senders=4")
	was := dial(t, primary.URL())
	var b strings.Builder
	for n := range int64(3) {
		if err := install.WriteSQL(&b, firn.MustLayout("instagram"), install.Definition{Number: n, Schema: fmt.Sprintf("insta%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := install.WriteMoves(&b, firn.MustLayout("instagram")); err != nil {
		t.Fatal(err)
	}
	run(t, was, b.String())
	run(t, was, "UPDATE firn.server SET cluster = 'c1', name = 'a', shards = 3, keys = 'mod', schemas = 'insta%d'")
	standby := testserver.PostgresStandby(t, primary)
	run(t, was, "SELECT firn.close(2)")
	last := number(t, was, "SELECT insta1.next_id()")
	caughtUp(t, dial(t, standby.URL()), "SELECT state = 'closed' FROM firn.shard WHERE shard = 2")
	if _, err := setup.PlanReopen("a", look(t, dial(t, standby.URL())), nil, nil, nil); err == nil || !strings.Contains(err.Error(), "leads to a standby") {
		t.Errorf("a standby: %v", err)
	}
	before, err := setup.PlanReopen("a", look(t, was), nil, nil, func(n int64) bool { return n == 1 })
	if err != nil || len(before.Shards) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	standby.Promote(t)
	now := dial(t, standby.URL())
	if _, err := now.Exec(t.Context(), "SELECT insta1.next_id()"); code(err) != "ID003" {
		t.Fatalf("promoted: %v", err)
	}
	lateReopen(t, was, now, before)

	views := look(t, now)
	var away *setup.AwayError
	if _, err := setup.PlanReopen("a", views, []string{"b"}, nil, nil); !errors.As(err, &away) || away.Away != "b" {
		t.Errorf("b has not answered: %v", err)
	}
	if plan, err := setup.PlanReopen("a", views, nil, nil, func(n int64) bool { return n == 9 }); err != nil || len(plan.Shards)+len(plan.Left) != 0 {
		t.Errorf("of a shard that is not there: %+v, %v", plan, err)
	}
	plan, err := setup.PlanReopen("a", views, []string{"b"}, []string{"b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Shards) != 3 || len(plan.Left) != 0 {
		t.Fatalf("the plan is %+v", plan)
	}
	above, err := setup.Above(firn.MustLayout("instagram"), time.Now(), map[string]time.Duration{"a": -time.Hour, "b": 20 * time.Second}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range plan.Shards {
		if err := plan.Reopen(t.Context(), now, nil, row, above); err != nil {
			t.Fatal(err)
		}
		if err := plan.Reopen(t.Context(), now, nil, row, above); err == nil {
			t.Error("opened a second time by the same plan")
		}
	}
	id := number(t, now, "SELECT insta1.next_id()")
	parts, err := firn.MustLayout("instagram").Decode(firn.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(parts.Time); id <= last || ahead < 25*time.Second || ahead > 31*time.Second {
		t.Errorf("%d after %d, %s ahead; it is to be above the latest clock and the margin", id, last, ahead)
	}
	if plan, err = setup.PlanReopen("a", look(t, now), nil, nil, nil); err != nil || len(plan.Shards)+len(plan.Left) != 0 {
		t.Errorf("there is nothing left to do, and the plan is %+v, %v", plan, err)
	}
}

// lateReopen has what was planned on a server, of a shard that served there, arrive on what
// has come in its place, as through a pooler that connects again: the row there is as it
// was seen, and the shard may have moved meanwhile.
func lateReopen(t *testing.T, was, now *pgx.Conn, plan *setup.Reopening) {
	t.Helper()
	row := plan.Shards[0]
	if err := plan.Reopen(t.Context(), now, nil, row, 0); code(err) != "ID007" {
		t.Errorf("planned of another server: %v", err)
	}
	last := `SELECT format('SELECT firn.reopen(%s, %s, %L, %s, %L, %L, %s, 0)', shard, term, state, (pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), incarnation, term + 1)
		FROM firn.shard WHERE shard = $1`
	var sql string
	if err := was.QueryRow(t.Context(), last, row.Shard).Scan(&sql); err != nil {
		t.Fatal(err)
	}
	if _, err := now.Exec(t.Context(), sql); code(err) != "ID007" {
		t.Errorf("the last statement, of another server: %v", err)
	}
	if _, err := now.Exec(t.Context(), "SELECT insta1.next_id()"); code(err) != "ID003" {
		t.Errorf("it is open: %v", err)
	}
}

// TestRevokedIsClaimed: what was revoked on a server can be moved there, at once where it
// knew nothing, and else when it was told where the shard is and has no copy of it any more.
func TestRevokedIsClaimed(t *testing.T) {
	c := dial(t, testserver.Postgres(t).URL())
	var sql strings.Builder
	if err := install.WriteSQL(&sql, firn.MustLayout("instagram"), install.Definition{Number: 7, Schema: "insta7"}); err != nil {
		t.Fatal(err)
	}
	if err := install.WriteMoves(&sql, firn.MustLayout("instagram")); err != nil {
		t.Fatal(err)
	}
	run(t, c, sql.String())
	run(t, c, "UPDATE firn.server SET cluster = 'c1', name = 'b', servers = '{a,b}', shards = 8, keys = 'mod', schemas = 'insta%d'")
	claim := func(shard, term int64) error {
		_, err := c.Exec(t.Context(), "SELECT firn.claim($1, format('insta%s', $1::integer), $2, 'attempt00001', 'batch0000001', 'a', 'b', true)", shard, term)
		return err
	}
	run(t, c, "SELECT firn.revoke(0, 'insta0', 3, 'a', 2)")
	if err := claim(0, 4); err != nil {
		t.Errorf("nothing was known of it: %v", err)
	}

	run(t, c, "UPDATE firn.shard SET timeline = 'FFFFFFFF' WHERE shard = 7; SELECT firn.revoke(7, 'insta7', 5, 'a', 2)")
	if err := claim(7, 8); code(err) != "ID003" {
		t.Errorf("what is known of it is of what this is a copy of: %v", err)
	}
	b := look(t, c)["a"]
	for _, tt := range []struct {
		is   topology.Row
		told bool
	}{
		{topology.Row{Shard: 7, State: topology.StateOpen, Term: 4, Here: true}, false}, // b has seen a later one
		{topology.Row{Shard: 7, State: topology.StateOpen, Term: 6, Here: false}, false},
		{topology.Row{Shard: 7, State: topology.StateMoved, Term: 6, Here: true}, false},
		{topology.Row{Shard: 7, State: topology.StateOpen, Term: 6, Here: true}, true},
	} {
		a := *b
		a.Server, a.Shards = "a", []topology.Row{tt.is}
		plan, err := setup.PlanReopen("b", map[string]*topology.View{"a": &a, "b": b}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Tell(t.Context(), c); err != nil {
			t.Error(err)
		}
		want := "ID003"
		if tt.told {
			want = "42P06" // its copy is in the way
		}
		if err := claim(7, 8); (len(plan.Told) == 1) != tt.told || code(err) != want {
			t.Errorf("a has %+v: b is told %+v, and says %v", tt.is, plan.Told, err)
		}
	}
	run(t, c, "DROP SCHEMA insta7 CASCADE")
	if err := claim(7, 8); err != nil {
		t.Error(err)
	}
}

// TestPlanReopen has every reason for leaving a shard.
func TestPlanReopen(t *testing.T) {
	mod, err := topology.ParseKeys("mod", 8)
	if err != nil {
		t.Fatal(err)
	}
	view := func(name string, rows ...topology.Row) *topology.View {
		return &topology.View{Cluster: "c1", Server: name, Layout: firn.MustLayout("instagram"), Keys: mod, Schemas: "insta%d", Shards: rows}
	}
	row := func(n int64, state topology.State, term int64, here bool, movedTo string) topology.Row {
		return topology.Row{Shard: n, Schema: fmt.Sprintf("insta%d", n), State: state, Term: term, Here: here, MovedTo: movedTo}
	}
	views := map[string]*topology.View{
		"a": view("a",
			row(0, topology.StateOpen, 1, true, ""), row(1, topology.StateOpen, 1, false, ""), row(2, topology.StateClosed, 4, false, ""),
			row(3, topology.StateMoved, 5, false, "b"), row(4, topology.StateOpen, 3, false, ""), row(5, topology.StateClosed, 3, false, ""),
			row(6, topology.StateClosed, 3, false, ""), row(7, topology.StateClosed, 3, false, "")),
		"b": view("b",
			row(2, topology.StateClosed, 3, false, ""), row(3, topology.StateClosed, 5, false, ""), row(4, topology.StateOpen, 2, true, ""),
			row(5, topology.StateClosed, 4, false, ""), row(6, topology.StateMoved, 4, false, "c"), row(7, topology.StateMoved, 2, false, "a")),
	}
	plan, err := setup.PlanReopen("a", views, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var opened []int64
	for _, row := range plan.Shards {
		opened = append(opened, row.Shard)
	}
	if want := []int64{1, 2, 7}; !slices.Equal(opened, want) {
		t.Errorf("opens %d, not %d", opened, want)
	}
	want := []setup.Left{
		{3, "it was moved to b"},
		{4, "it is open on b"},
		{5, "b has had it since: the term there is 4, and 3 here"},
		{6, "b has given it to c since"},
	}
	if !slices.Equal(plan.Left, want) {
		t.Errorf("leaves %v, not %v", plan.Left, want)
	}
	moved := map[string]*topology.View{"a": view("a", row(1, topology.StateMoved, 3, true, "c")), "b": view("b", row(1, topology.StateOpen, 5, true, ""))}
	if plan, err = setup.PlanReopen("a", moved, nil, nil, nil); err != nil || !slices.Equal(plan.Left, []setup.Left{{1, "it was moved to c, and is on b now"}}) {
		t.Errorf("moved to c, which is no server any more, and on b now: %+v, %v", plan, err)
	}
	later := map[string]*topology.View{
		"a": view("a", row(1, topology.StateClosed, 3, false, ""), row(2, topology.StateClosed, 3, false, "")),
		"b": view("b", row(1, topology.StateMoved, 5, true, "c"), row(2, topology.StateMoved, 5, true, "c")),
		"c": view("c", row(1, topology.StateOpen, 6, true, ""), row(2, topology.StateMoved, 7, true, "d")),
		"d": view("d"),
	}
	if plan, err = setup.PlanReopen("a", later, nil, nil, nil); err != nil || !slices.Equal(plan.Left, []setup.Left{{1, "it is open on c"}, {2, "c has given it to d since"}}) {
		t.Errorf("it is where the last server gave it: %+v, %v", plan, err)
	}
	if plan, err := setup.PlanReopen("a", views, nil, nil, func(n int64) bool { return n == 0 || n == 4 }); err != nil || len(plan.Shards) != 1 || len(plan.Left) != 1 {
		t.Errorf("0 was asked for, to be opened again: %+v, %v", plan, err)
	}
}

func dial(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func run(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

func number(t *testing.T, c *pgx.Conn, sql string) (n int64) {
	t.Helper()
	if err := c.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return n
}

func caughtUp(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var ok bool
		if err := c.QueryRow(t.Context(), sql).Scan(&ok); err == nil && ok {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v", sql, ok, err)
		}
	}
}

func look(t *testing.T, c *pgx.Conn) map[string]*topology.View {
	t.Helper()
	v, err := topology.Look(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*topology.View{"a": v}
}

func code(err error) string {
	var pg *pgconn.PgError
	errors.As(err, &pg)
	if pg == nil {
		return ""
	}
	return pg.Code
}
