package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

const durable, lossy = true, false

// TestDurability judges what could be seen.
func TestDurability(t *testing.T) {
	base := look{
		version: "15.1", fsync: "on", pages: "on", commit: "on", table: true, logged: true,
		timeline: "00000001", started: 1, system: "7", role: "app",
	}
	standby := func(sync, name string) other { return other{name, true, sync, name} }
	set := func(names, commit string, others ...other) func(*look) {
		return func(l *look) { l.names, l.commit, l.others = names, commit, others }
	}
	for name, c := range map[string]struct {
		change  func(*look)
		durable bool
		want    string
	}{
		"alone":              {func(l *look) {}, durable, "no standby"},
		"local alone":        {func(l *look) { l.commit = "local" }, durable, "synchronous_commit=local"},
		"write alone":        {func(l *look) { l.commit = "remote_write" }, durable, "remote_write"},
		"no fsync":           {func(l *look) { l.fsync = "off" }, lossy, "a crash of its host"},
		"no pages":           {func(l *look) { l.pages = "off" }, lossy, "a crash of its host"},
		"no commit":          {func(l *look) { l.commit = "off" }, lossy, "SET synchronous_commit = on"},
		"unlogged":           {func(l *look) { l.logged = false }, lossy, "SET LOGGED"},
		"asynchronous":       {set("", "on", standby("async", "a")), lossy, "may be promoted"},
		"unseen, no names":   {set("", "on", standby("", "a")), lossy, "may be promoted"},
		"local, one away":    {set("a", "local"), lossy, "may be promoted"},
		"waits for one away": {set("a", "on"), durable, "no standby, a commit waits for 1"},
		"away":               {set("", "on", other{id: "s"}), lossy, "1 slot of a standby that is away"},
		"synchronous":        {set("2 (a, b)", "on", standby("sync", "a"), standby("sync", "b")), durable, "2 of them synchronous"},
		"one asynchronous":   {set("a", "on", standby("sync", "a"), standby("async", "b")), lossy, "may be promoted"},
		"one behind":         {set("a", "on", standby("potential", "a")), lossy, "may be promoted"},
		"apply":              {set("a", "remote_apply", standby("sync", "a")), durable, "apply"},
		"only written":       {set("a", "remote_write", standby("sync", "a")), lossy, "may be promoted"},
		"only local":         {set("a", "local", standby("sync", "a")), lossy, "may be promoted"},
		"unseen":             {set("a", "on", standby("", "a")), durable, "GRANT pg_monitor TO app"},
		"unseen, not listed": {set("a", "on", standby("", "b")), lossy, "in case of doubt: GRANT pg_monitor TO app"},
		"unseen, too many":   {set("a", "on", standby("", "a"), standby("", "b")), lossy, "may be promoted"},
		"unseen, all":        {set("ANY 2 (*)", "on", standby("", "a"), standby("", "b")), durable, "a commit waits for 2"},
		"quorum of all":      {set("ANY 2 (a, b)", "on", standby("quorum", "a"), standby("quorum", "b")), durable, "a commit waits for 2"},
		"quorum of half":     {set("ANY 1 (a, b)", "on", standby("quorum", "a"), standby("quorum", "b")), lossy, "may be promoted"},
		"one away of quorum": {set("ANY 1 (a, b)", "on", standby("quorum", "a"), other{id: "s"}), lossy, "away"},
		"one away of all":    {set("2 (a, b)", "on", standby("sync", "a"), other{id: "s"}), durable, "away"},
	} {
		l := base
		c.change(&l)
		p := l.durability()
		if p.Durable != c.durable || !strings.Contains(p.Why, c.want) {
			t.Errorf("%s: %v: %s", name, p, p.Why)
		}
		if named := l.commit != "off" && l.logged; named != (p.Instance != "") {
			t.Errorf("%s: instance %q", name, p.Instance)
		}
	}
}

// TestDurabilitySettings looks at a real server whose settings change.
func TestDurabilitySettings(t *testing.T) {
	pg := testserver.Postgres(t)
	db := connect(t, pg.URL())
	s := New(db)
	mustPut(t, s, "k", `1`, store.Condition{})
	first := tabletest.Durability(t, s)
	if !first.Durable || first.LocalClock || first.NoticesLoss || strings.Count(first.Instance, "/") != 2 || strings.HasPrefix(first.Instance, "/") {
		t.Errorf("%+v", first)
	}
	for _, c := range []struct{ change, back, want string }{
		{`ALTER TABLE firn_records SET UNLOGGED`, `ALTER TABLE firn_records SET LOGGED`, "unlogged"},
		{`ALTER SYSTEM SET fsync = off`, `ALTER SYSTEM RESET fsync`, "fsync=off"},
		{`ALTER SYSTEM SET full_page_writes = off`, `ALTER SYSTEM RESET full_page_writes`, "full_page_writes=off"},
		{`ALTER SYSTEM SET synchronous_commit = off`, `ALTER SYSTEM RESET synchronous_commit`, "synchronous_commit=off"},
		{`SELECT pg_create_physical_replication_slot('away')`, `SELECT pg_drop_replication_slot('away')`, "1 slot of"},
	} {
		do(t, db, c.change, `SELECT pg_reload_conf()`)
		becomes(t, s, lossy, c.want)
		do(t, db, c.back, `SELECT pg_reload_conf()`)
		becomes(t, s, durable, "no standby")
	}
	for _, again := range []func(testing.TB){pg.Kill, pg.Stop} {
		again(t)
		pg.Start(t)
		works(t, s)
		if p := tabletest.Durability(t, s); p.Instance == first.Instance || !p.Durable {
			t.Errorf("after a restart: %+v", p)
		}
	}
}

// TestDurabilityStandbys has a standby that commits wait for, or not, and one who asks
// who may see that, or not.
func TestDurabilityStandbys(t *testing.T) {
	primary := testserver.Postgres(t)
	db := connect(t, primary.URL())
	do(t, db, `CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`)
	all, app := New(db), New(connect(t, at(t, primary.URL(), "user=app")))
	mustPut(t, app, "k", `1`, store.Condition{})
	standby := testserver.PostgresStandby(t, primary, "cluster_name=sibling")
	for _, s := range []*Store{all, app} {
		becomes(t, s, lossy, "1 connected standby")
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 'sibling'`, `SELECT pg_reload_conf()`)
	becomes(t, all, durable, "1 of them synchronous")
	becomes(t, app, durable, "GRANT pg_monitor TO app")
	readOnly := New(connect(t, at(t, primary.URL(), "user=app", "default_transaction_read_only=on")))
	for _, s := range []*Store{all, app, readOnly} { // a read waits for the standby, which anybody may
		if r, err := s.Get(t.Context(), "k"); err != nil || r.Version == "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 'another'`, `ALTER SYSTEM SET synchronous_commit = local`, `SELECT pg_reload_conf()`)
	becomes(t, all, lossy, "may be promoted")
	standby.Stop(t)
	becomes(t, all, lossy, "no standby, a commit waits for 1") // one that is away may be promoted as well
	do(t, db, `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	for _, s := range []*Store{all, app} {
		becomes(t, s, durable, "no standby")
	}
}

// TestDurabilityTable: a view, or a table in parts, may hide one that is not logged.
func TestDurabilityTable(t *testing.T) {
	s, db := fresh(t)
	mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `ALTER TABLE firn_records RENAME TO hidden`, `ALTER TABLE hidden SET UNLOGGED`, `CREATE VIEW firn_records AS TABLE hidden`)
	if p := tabletest.Durability(t, s); p.Durable || !strings.Contains(p.Why, "no plain table") {
		t.Errorf("a view: %+v", p)
	}
}

// TestNamesOfStandbys reads synchronous_standby_names as the server does.
func TestNamesOfStandbys(t *testing.T) {
	for text, want := range map[string]string{
		`a`: `1 [a]`, ` a , B`: `1 [a B]`, `*`: `1 [*]`, `FIRST 2 (a, b, c)`: `2 [a b c]`, `any 3(a,b)`: `3 [a b]`, `2 (a)`: `2 [a]`,
		`"any 2 (x)"`: `1 [any 2 (x)]`, `"a,b", "say ""c"""`: `1 [a,b say "c"]`, "ANY\n1\t( \"a\" )": `1 [a]`,
	} {
		n, names := parseNames(text)
		if got := fmt.Sprint(n, " ", names); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
	if !listed([]string{"S2"}, "s2") || listed([]string{"s2"}, "s3") || !listed([]string{"x", "*"}, "s3") {
		t.Error("the server compares names without regard to case, and * is any")
	}
}
