package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/testserver"
)

// publisher is a database of somebody else, whose table feed of the schema insta0 others
// subscribe to.
func publisher(t *testing.T) *site {
	t.Helper()
	p := newSite(t, testserver.Shared(t, targetServer), "p", sites.Add(1))
	p.must(t, "CREATE SCHEMA insta0; CREATE TABLE insta0.feed (id bigint PRIMARY KEY); CREATE PUBLICATION feed FOR TABLE insta0.feed")
	return p
}

// subscribe has a site subscribe to a publisher.
func (s *site) subscribe(t *testing.T, p *site, name string, more string) {
	t.Helper()
	p.must(t, fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", name))
	s.must(t, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s' PUBLICATION feed WITH (create_slot = false%s)", name, p.reached(), more))
}

// unsubscribe drops a subscription with its slot.
func (s *site) unsubscribe(t *testing.T, name string) {
	t.Helper()
	s.must(t, "DROP SUBSCRIPTION "+name)
}

// refusedMove has a shard moved, or moved back, by a program that made no plan, and fails
// unless it is refused and nothing is changed.
func refusedMove(t *testing.T, way func(context.Context, []int64) ([]Moved, error), want string, sites ...*site) {
	t.Helper()
	before := everything(t, sites...)
	var refused *RefusedError
	if _, err := way(t.Context(), []int64{0}); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if after := everything(t, sites...); after != before {
		t.Errorf("it has changed something:\n%s", difference(before, after))
	}
}

// TestOthersWrite: a subscription of somebody else into a table of the shard. Its rows
// would go to the old copy, past the fence.
func TestOthersWrite(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	p := publisher(t)
	a.must(t, "CREATE TABLE insta0.feed (id bigint PRIMARY KEY)")
	name := "cdc_" + a.Server.Config.Database
	a.subscribe(t, p, name, "")
	want := "shard 0 on a: the subscription " + name + " writes to it (feed), and would continue to write to the copy that stays here"
	if got := speaks(t, a.Server, b.Server); len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
	m := mover(t, a, b)
	refusedMove(t, m.Move, want+" (stop its publisher; DROP SUBSCRIPTION "+name+"; move the shard; on b CREATE SUBSCRIPTION", a, b)
	a.must(t, "ALTER SUBSCRIPTION "+name+" DISABLE")
	refusedMove(t, m.Move, want, a, b)

	// What it says is done.
	a.must(t, "ALTER SUBSCRIPTION "+name+" ENABLE")
	p.must(t, "INSERT INTO insta0.feed VALUES (1)")
	a.eventually(t, "SELECT count(*)::text FROM insta0.feed", "1")
	a.unsubscribe(t, name)
	mustMove(t, m.Move, 0)
	b.subscribe(t, p, name, ", copy_data = false")
	p.must(t, "INSERT INTO insta0.feed VALUES (2)")
	b.eventually(t, "SELECT count(*)::text FROM insta0.feed", "2")

	// The way back is the same.
	refusedMove(t, m.Revert, "shard 0 on b: the subscription "+name+" writes to it (feed)", a, b)
	b.unsubscribe(t, name)
	mustMove(t, m.Revert, 0)
	mustMove(t, m.Move, 0)

	// Rows that somebody wrote to the old copy since are not dropped with it.
	a.subscribe(t, p, name, ", copy_data = false")
	var pg *pgconn.PgError
	if _, err := m.Finish(t.Context(), []int64{0}); !errors.As(err, &pg) || pg.Code != "2BP01" || !strings.Contains(pg.Message, "subscriptions write to this copy of the schema insta0, and rows of theirs may be nowhere else: "+name+" (feed)") {
		t.Errorf("%v", err)
	}
	a.unsubscribe(t, name)
	mustEnd(t, m.Finish, 0)
}

// TestOthersComeLate: what is made after the plan is found when the shard is let go, and
// the shard goes on serving where it is.
func TestOthersComeLate(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	p := publisher(t)
	a.must(t, "CREATE TABLE insta0.feed (id bigint PRIMARY KEY)")
	name := "late_" + a.Server.Config.Database
	for _, tt := range []struct {
		name, text, hint string
		harm, mend       func()
	}{
		{
			"a subscription", "firn: the subscription " + name + " writes to shard 0 (feed)", "DROP SUBSCRIPTION " + name,
			func() { a.subscribe(t, p, name, ", copy_data = false") }, func() { a.unsubscribe(t, name) },
		},
		{
			"a publication", "firn: the publication late has tables of shard 0 (feed)", "--consumers-know late",
			func() { a.must(t, "CREATE PUBLICATION late FOR TABLE insta0.feed") }, func() { a.must(t, "DROP PUBLICATION late") },
		},
	} {
		m := New(at(a, "before", seizes, tt.harm), b.Server, hasty())
		var pg *pgconn.PgError
		if _, err := m.Move(t.Context(), []int64{0}); !errors.As(err, &pg) || pg.Code != "2BP01" || !strings.HasPrefix(pg.Message, tt.text) || !strings.Contains(pg.Hint, tt.hint) {
			t.Errorf("%s: %v", tt.name, err)
		}
		m.Close()
		if owner := ownersOf(a, b)("0"); owner != "a" {
			t.Errorf("%s: the shard is on %q", tt.name, owner)
		}
		a.must(t, "INSERT INTO insta0.feed VALUES (insta0.next_id())")
		tt.mend()
	}
	mustMove(t, mover(t, a, b).Move, 0)
}

// TestOthersRead: a publication that somebody else reads, of one table, of all, of a
// schema. After the move it would have no rows of the shard any more.
func TestOthersRead(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 2)
	a.must(t, "CREATE TABLE insta0.orders (id bigint PRIMARY KEY); CREATE TABLE insta0.bills (id bigint PRIMARY KEY); CREATE TABLE insta1.orders (id bigint PRIMARY KEY); CREATE PUBLICATION elsewhere FOR TABLE insta1.orders")
	plan := func(o *Options) (texts []string) {
		t.Helper()
		p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Obstacles {
			texts = append(texts, r.String()+" / "+r.Do())
		}
		return texts
	}
	for _, tt := range []struct{ of, has string }{
		{"TABLE insta0.orders, insta0.bills, insta1.orders", "bills, orders"}, {"ALL TABLES", "all tables"}, {"TABLES IN SCHEMA insta0", "all tables of the schema"},
	} {
		if version(t, a) < 150000 && strings.HasPrefix(tt.of, "TABLES IN SCHEMA") {
			continue
		}
		a.must(t, "CREATE PUBLICATION cdc FOR "+tt.of)
		want := "shard 0 on a: the publication cdc has " + tt.has + " of it, and its consumers would get no rows of it any more"
		if got := plan(nil); len(got) != 1 || got[0] != want+" / if they know of the move, and read from b too: --consumers-know cdc" {
			t.Errorf("%s: %q", tt.of, got)
		}
		refusedMove(t, mover(t, a, b).Move, want, a, b)
		if got := plan(&Options{Consumers: []string{"cdc"}}); len(got) != 0 {
			t.Errorf("%s, of which is known: %q", tt.of, got)
		}
		a.must(t, "DROP PUBLICATION cdc")
	}
	b.must(t, "CREATE PUBLICATION every FOR ALL TABLES")
	if got := plan(nil); len(got) != 1 || got[0] != "server b: the publication every has all tables, and its consumers would get the rows of the copy as new ones / if they know of the move: --consumers-know every" {
		t.Errorf("%q", got)
	}
	a.must(t, "CREATE PUBLICATION cdc FOR ALL TABLES; CREATE PUBLICATION own FOR TABLE insta0.orders")
	m := New(a.Server, b.Server, &Options{Lag: hasty().Lag, Consumers: []string{"own", "every", "cdc"}})
	defer m.Close()
	mustMove(t, m.Move, 0)
	// There it is in a publication again: who takes it back says so again.
	refusedMove(t, mover(t, a, b).Revert, "shard 0 on b: the publication every has all tables of it", a, b)
	mustMove(t, m.Revert, 0)

	a.must(t, "DROP PUBLICATION own, cdc")
	a.must(t, "SELECT pg_create_logical_replication_slot('others_"+a.Server.Config.Database+"', 'test_decoding')")
	b.must(t, "DROP PUBLICATION every")
	p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{1}, false, &Options{Consumers: []string{"elsewhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0].String(), "server a: these slots may read the shards without a publication, and get no rows of them any more: others_"+a.Server.Config.Database+" (test_decoding)") {
		t.Errorf("%+v, %v", p.Notes, p.Err())
	}
}

// TestNumbersOfOthers: what a shard has numbers from and would not go with it. On the
// other server it begins at 1.
func TestNumbersOfOthers(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 2)
	a.must(t, `CREATE SEQUENCE public.numbers; CREATE SCHEMA more; CREATE SEQUENCE more."Odd one"; CREATE SEQUENCE more.single; CREATE SEQUENCE insta0.own; CREATE SEQUENCE public.own;
		CREATE TABLE insta0.orders (id bigint PRIMARY KEY DEFAULT insta0.next_id(), n serial, m bigint GENERATED ALWAYS AS IDENTITY, number bigint)`)
	b.must(t, "CREATE SEQUENCE public.numbers; CREATE SCHEMA more")
	const begins = ", which begins anew on b and would repeat them: "
	for _, tt := range []struct{ name, harm, mend, want string }{
		{"a default", "ALTER TABLE insta0.orders ALTER number SET DEFAULT nextval('public.numbers')", "ALTER TABLE insta0.orders ALTER number DROP DEFAULT", "public.numbers" + begins + "default value for insta0.orders.number"},
		{"in an expression", "ALTER TABLE insta0.orders ALTER number SET DEFAULT 7 + nextval('insta1.next_id_counter')", "ALTER TABLE insta0.orders ALTER number DROP DEFAULT", "insta1.next_id_counter" + begins + "default value for insta0.orders.number"},
		{"a domain", `CREATE DOMAIN insta0.numbered AS bigint DEFAULT nextval('more."Odd one"')`, "DROP DOMAIN insta0.numbered", `more."Odd one"` + begins + "type insta0.numbered"},
		{"a view", "CREATE VIEW insta0.last AS SELECT last_value FROM public.numbers", "DROP VIEW insta0.last", `public.numbers` + begins + `rule "_RETURN" on insta0.last`},
		{"a rule", "CREATE RULE counts AS ON DELETE TO insta0.orders DO ALSO SELECT nextval('public.numbers')", "DROP RULE counts ON insta0.orders", "public.numbers" + begins + "rule counts on insta0.orders"},
		{"a constraint", "ALTER TABLE insta0.orders ADD CONSTRAINT less CHECK (id < nextval('public.numbers'))", "ALTER TABLE insta0.orders DROP CONSTRAINT less", "public.numbers" + begins + "table constraint less on insta0.orders"},
		{"a trigger", "CREATE TRIGGER tr BEFORE INSERT ON insta0.orders FOR EACH ROW WHEN (nextval('public.numbers') > 5) EXECUTE FUNCTION suppress_redundant_updates_trigger()", "DROP TRIGGER tr ON insta0.orders", "public.numbers" + begins + "trigger tr on insta0.orders"},
		{"a policy", "CREATE POLICY po ON insta0.orders USING (nextval('public.numbers') > 5)", "DROP POLICY po ON insta0.orders", "public.numbers" + begins + "policy po on insta0.orders"},
		{"a function", "CREATE FUNCTION insta0.f() RETURNS bigint BEGIN ATOMIC SELECT nextval('public.numbers'); END", "DROP FUNCTION insta0.f", "public.numbers" + begins + "function insta0.f()"},
		{"the text of a function", "CREATE FUNCTION insta0.f() RETURNS bigint LANGUAGE sql AS $$ SELECT NEXTVAL ( 'public.numbers' ) $$", "DROP FUNCTION insta0.f", "public.numbers" + begins + "function insta0.f()"},
		{"a name without a schema", "CREATE FUNCTION insta0.f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('numbers'::regclass); END $$", "DROP FUNCTION insta0.f", "public.numbers" + begins + "function insta0.f()"},
		{"a name of any schema", "CREATE FUNCTION insta0.f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('single'); END $$", "DROP FUNCTION insta0.f", "more.single" + begins + "function insta0.f()"},
		{"a statement in a text", "CREATE FUNCTION insta0.f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT setval(''public.numbers'', 5)'; END $$", "DROP FUNCTION insta0.f", "public.numbers" + begins + "function insta0.f()"},
		{"a function of another schema", "CREATE FUNCTION more.f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('public.numbers'); END $$; ALTER TABLE insta0.orders ALTER number SET DEFAULT more.f()", "ALTER TABLE insta0.orders ALTER number DROP DEFAULT; DROP FUNCTION more.f", "public.numbers" + begins + "function more.f()"},
		{"and what that calls", "CREATE FUNCTION more.g() RETURNS bigint BEGIN ATOMIC SELECT nextval('public.numbers'); END; CREATE FUNCTION more.f() RETURNS bigint BEGIN ATOMIC SELECT more.g(); END; ALTER TABLE insta0.orders ALTER number SET DEFAULT more.f()", "ALTER TABLE insta0.orders ALTER number DROP DEFAULT; DROP FUNCTION more.f; DROP FUNCTION more.g", "public.numbers" + begins + "function more.g()"},
		{"a trigger's function", "CREATE FUNCTION more.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.number := nextval('public.numbers'); RETURN NEW; END $$; CREATE TRIGGER tr BEFORE INSERT ON insta0.orders FOR EACH ROW EXECUTE FUNCTION more.f()", "DROP FUNCTION more.f CASCADE", "public.numbers" + begins + "function more.f()"},
	} {
		a.must(t, tt.harm)
		got := speaks(t, a.Server, b.Server)
		if len(got) != 1 || got[0] != "shard 0 on a: it has numbers from "+tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if tt.name == "a default" {
			refusedMove(t, mover(t, a, b).Move, "if nobody else draws from it: ALTER SEQUENCE public.numbers SET SCHEMA insta0; else draw from a generator of the shard: SET DEFAULT insta0.next_id()", a, b)
		}
		a.must(t, tt.mend)
	}

	// What the shard has of its own, and what nobody can see.
	a.must(t, `CREATE FUNCTION insta0.f() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('own') + nextval('insta0.own') $$; ALTER TABLE insta0.orders ALTER number SET DEFAULT insta0.f();
		CREATE FUNCTION insta0.g(s regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval(s); END $$; CREATE FUNCTION insta0.h() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('it is''no name'); END $$`)
	p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, nil)
	const want = "shard 0 on a: these draw from a sequence that their text does not name: function insta0.g(regclass), function insta0.h()"
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil || len(p.Notes) != 1 || p.Notes[0].String() != want {
		t.Errorf("%v, %+v", p.Err(), p.Notes)
	}

	// What the cure says, done: the numbers go on.
	a.must(t, "ALTER TABLE insta0.orders ALTER number SET DEFAULT nextval('public.numbers'); INSERT INTO insta0.orders DEFAULT VALUES; INSERT INTO insta0.orders DEFAULT VALUES; ALTER SEQUENCE public.numbers SET SCHEMA insta0")
	last := a.one(t, "SELECT max(number)::text FROM insta0.orders")
	mustMove(t, mover(t, a, b).Move, 0)
	if next := b.one(t, "INSERT INTO insta0.orders DEFAULT VALUES RETURNING (number - 1)::text"); next != last {
		t.Errorf("after %s comes 1 + %s", last, next)
	}
}
