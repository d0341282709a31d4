package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestPromise judges what could be seen.
func TestPromise(t *testing.T) {
	base := look{
		version: "15.1", fsync: "on", pages: "on", commit: "on", table: true, logged: true,
		timeline: "00000001", started: 1, system: "7",
	}
	for name, c := range map[string]struct {
		change func(*look)
		class  store.Class
		want   string
	}{
		"alone":              {func(l *look) {}, store.Strict, "no standby"},
		"local alone":        {func(l *look) { l.commit = "local" }, store.Strict, "synchronous_commit=local"},
		"write alone":        {func(l *look) { l.commit = "remote_write" }, store.Strict, "remote_write"},
		"no fsync":           {func(l *look) { l.fsync = "off" }, store.Lossy, "a crash of its host"},
		"no pages":           {func(l *look) { l.pages = "off" }, store.Lossy, "a crash of its host"},
		"no commit":          {func(l *look) { l.commit = "off" }, store.Lossy, "SET synchronous_commit = on"},
		"unlogged":           {func(l *look) { l.logged = false }, store.Lossy, "SET LOGGED"},
		"asynchronous":       {func(l *look) { l.standbys = 1 }, store.Lossy, "may be promoted"},
		"unseen, no names":   {func(l *look) { l.standbys, l.unseen = 1, 1 }, store.Lossy, "may be promoted"},
		"local, one away":    {func(l *look) { l.synchronous, l.commit = true, "local" }, store.Lossy, "may be promoted"},
		"waits for one away": {func(l *look) { l.synchronous = true }, store.Strict, "no standby"},
		"away":               {func(l *look) { l.slots = 1 }, store.Lossy, "1 slots for standbys that are away"},
		"synchronous":        {func(l *look) { l.synchronous, l.standbys, l.confirmed = true, 2, 2 }, store.Strict, "of which 2 are synchronous"},
		"one asynchronous":   {func(l *look) { l.synchronous, l.standbys, l.confirmed = true, 2, 1 }, store.Lossy, "may be promoted"},
		"apply":              {func(l *look) { l.synchronous, l.standbys, l.confirmed, l.commit = true, 1, 1, "remote_apply" }, store.Strict, "apply"},
		"only written":       {func(l *look) { l.synchronous, l.standbys, l.confirmed, l.commit = true, 1, 1, "remote_write" }, store.Lossy, "may be promoted"},
		"only local":         {func(l *look) { l.synchronous, l.standbys, l.confirmed, l.commit = true, 1, 1, "local" }, store.Lossy, "may be promoted"},
		"unseen":             {func(l *look) { l.synchronous, l.standbys, l.unseen = true, 1, 1 }, store.Strict, "GRANT pg_monitor"},
		"one away of quorum": {func(l *look) { l.synchronous, l.standbys, l.confirmed, l.slots = true, 1, 1, 1 }, store.Strict, "away"},
	} {
		l := base
		c.change(&l)
		p := l.promise()
		if p.Class != c.class || !strings.Contains(p.Why, c.want) {
			t.Errorf("%s: %v: %s", name, p.Class, p.Why)
		}
		if named := l.commit != "off" && l.logged; named != (p.Instance != "") {
			t.Errorf("%s: instance %q", name, p.Instance)
		}
	}
}

func promise(tb testing.TB, s *Store) store.Promise {
	tb.Helper()
	p, err := s.Promise(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestPromiseSettings looks at a real server whose settings change.
func TestPromiseSettings(t *testing.T) {
	pg := testserver.Postgres(t)
	db := connect(t, pg.URL())
	s := New(db)
	mustPut(t, s, "k", `1`, store.Condition{})
	first := promise(t, s)
	if first.Class != store.Strict || first.Embedded || strings.Count(first.Instance, "/") != 2 || strings.HasPrefix(first.Instance, "/") {
		t.Errorf("%+v", first)
	}
	for _, c := range []struct{ change, back, want string }{
		{`ALTER TABLE firn_records SET UNLOGGED`, `ALTER TABLE firn_records SET LOGGED`, "unlogged"},
		{`ALTER SYSTEM SET fsync = off`, `ALTER SYSTEM RESET fsync`, "fsync=off"},
		{`ALTER SYSTEM SET full_page_writes = off`, `ALTER SYSTEM RESET full_page_writes`, "full_page_writes=off"},
		{`ALTER SYSTEM SET synchronous_commit = off`, `ALTER SYSTEM RESET synchronous_commit`, "synchronous_commit=off"},
		{`SELECT pg_create_physical_replication_slot('away')`, `SELECT pg_drop_replication_slot('away')`, "1 slots"},
	} {
		do(t, db, c.change, `SELECT pg_reload_conf()`)
		becomes(t, s, store.Lossy, c.want)
		do(t, db, c.back, `SELECT pg_reload_conf()`)
		becomes(t, s, store.Strict, "no standby")
	}
	for _, again := range []func(testing.TB){pg.Kill, pg.Stop} {
		again(t)
		pg.Start(t)
		works(t, s)
		if p := promise(t, s); p.Instance == first.Instance || p.Class != store.Strict {
			t.Errorf("after a restart: %+v", p)
		}
	}
}

// becomes waits for a server to have read its settings.
func becomes(tb testing.TB, s *Store, class store.Class, want string) {
	tb.Helper()
	var p store.Promise
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if p = promise(tb, s); p.Class == class && strings.Contains(p.Why, want) {
			return
		}
	}
	tb.Errorf("%v: %s: not %v, %q", p.Class, p.Why, class, want)
}

// TestPromiseStandbys has a standby that commits wait for, or not, and one who asks
// who may see that, or not.
func TestPromiseStandbys(t *testing.T) {
	primary := testserver.Postgres(t)
	db := connect(t, primary.URL())
	do(t, db, `CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`)
	all, app := New(db), New(connect(t, at(t, primary.URL(), "user=app")))
	mustPut(t, app, "k", `1`, store.Condition{})
	standby := testserver.PostgresStandby(t, primary, "cluster_name=sibling")
	for _, s := range []*Store{all, app} {
		becomes(t, s, store.Lossy, "1 connected standbys")
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 'sibling'`, `SELECT pg_reload_conf()`)
	becomes(t, all, store.Strict, "of which 1 are synchronous")
	becomes(t, app, store.Strict, "cannot be seen")
	readOnly := New(connect(t, at(t, primary.URL(), "user=app", "default_transaction_read_only=on")))
	for _, s := range []*Store{all, app, readOnly} { // a read waits for the standby, which anybody may
		if r, err := s.Get(t.Context(), "k"); err != nil || r.Version == "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 'another'`, `ALTER SYSTEM SET synchronous_commit = local`, `SELECT pg_reload_conf()`)
	becomes(t, all, store.Lossy, "may be promoted")
	standby.Stop(t)
	becomes(t, all, store.Lossy, "no standby") // one that is away may be promoted as well
	do(t, db, `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	for _, s := range []*Store{all, app} {
		becomes(t, s, store.Strict, "no standby")
	}
}

// TestPromiseTable: a view, or a table in parts, may hide one that is not logged.
func TestPromiseTable(t *testing.T) {
	s, db := fresh(t)
	mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `ALTER TABLE firn_records RENAME TO hidden`, `ALTER TABLE hidden SET UNLOGGED`, `CREATE VIEW firn_records AS TABLE hidden`)
	if p := promise(t, s); p.Class != store.Lossy || !strings.Contains(p.Why, "no plain table") {
		t.Errorf("a view: %+v", p)
	}
}
