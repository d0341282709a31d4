package setup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func adoptWish() setup.Wish { return setup.Wish{Keys: "mod", Count: 8} }

func tryAdopt(ctx context.Context, servers []topology.Server, w setup.Wish, patience time.Duration) (*setup.Adoption, error) {
	s, err := setup.Open(ctx, servers, true)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	a, err := s.Adopt(ctx, w, "next_id")
	if err != nil {
		return nil, err
	}
	return a, a.Run(ctx, patience, new(atomic.Int64))
}

func mustAdopt(t testing.TB, servers []topology.Server) *setup.Adoption {
	t.Helper()
	a, err := tryAdopt(t.Context(), servers, adoptWish(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// published is a schema with the function as it was published, and a table.
func published(n int) string {
	return fmt.Sprintf(`
CREATE SCHEMA insta%[1]d;
CREATE SEQUENCE insta%[1]d.table_id_seq;
CREATE FUNCTION insta%[1]d.next_id(OUT result bigint) AS $f$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := %[1]d;
BEGIN
    SELECT nextval('insta%[1]d.table_id_seq') %% 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$f$ LANGUAGE plpgsql;
CREATE TABLE insta%[1]d.photo (id bigint DEFAULT insta%[1]d.next_id(), x int);
CREATE INDEX ON insta%[1]d.photo (id);
INSERT INTO insta%[1]d.photo (x) SELECT generate_series(1, 10);
`, n)
}

func TestAdopt(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	a.must(t, published(0)+published(1)+"CREATE SCHEMA insta9; CREATE SCHEMA other")
	b.must(t, published(2)+"ALTER SEQUENCE insta2.table_id_seq RESTART") // as if nobody had drawn
	hour, err := firn.MustLayout("instagram").Encode(firn.Parts{Time: time.Now().Add(time.Hour), Shard: 1})
	if err != nil {
		t.Fatal(err)
	}
	old := "old_" + a.Config().Database
	a.must(t, strings.ReplaceAll(fmt.Sprintf(`
DROP ROLE IF EXISTS setup_old; CREATE ROLE setup_old;
GRANT USAGE ON SCHEMA insta1 TO setup_old; GRANT USAGE ON SEQUENCE insta1.table_id_seq TO setup_old; GRANT INSERT ON insta1.photo TO setup_old;
CREATE TABLE other.comments (comment_id bigint DEFAULT insta1.next_id());
CREATE TABLE insta1.slow (id bigint); INSERT INTO insta1.slow VALUES (%d);
CREATE TABLE insta1.keyed (id bigint PRIMARY KEY); INSERT INTO insta1.keyed VALUES (9000000000000000000);
CREATE TABLE insta1.small (id integer)`, hour), "setup_old", old))
	servers := serversOf(a, b)
	before := describe(t, a, b)
	s, err := setup.Open(t.Context(), servers, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Adopt(t.Context(), adoptWish(), "next_id")
	if err != nil {
		t.Fatal(err)
	}
	if after := describe(t, a, b); !slices.Equal(before, after) {
		t.Error("a plan has changed something")
	}
	one := p.Servers[0].Schemas[1]
	var columns []string
	for _, c := range one.Columns {
		columns = append(columns, c.String())
	}
	slices.Sort(columns)
	if want := []string{"insta1.keyed.id", "insta1.photo.id", "insta1.slow.id (no index)", "other.comments.comment_id (no index)"}; !slices.Equal(columns, want) {
		t.Errorf("%q", columns)
	}
	if one.Shard != 1 || one.Sequence != "insta1.table_id_seq" || !slices.Equal(one.Grantees, []string{old}) || p.Plan.Keys.Shards() != 8 || p.Steps() != 3 {
		t.Errorf("%+v", p)
	}

	mustAdopt(t, servers)
	for i, d := range []*database{a, a, b} {
		last := d.one(t, fmt.Sprintf("SELECT max(id)::text FROM insta%d.photo", i))
		d.must(t, fmt.Sprintf("INSERT INTO insta%d.photo (x) VALUES (11)", i))
		if got := d.one(t, fmt.Sprintf("SELECT format('%%s %%s', (firn.decode(id)).shard, id > %s) FROM insta%d.photo WHERE x = 11", last, i)); got != fmt.Sprintf("%d t", i) {
			t.Errorf("insta%d: an id of shard, above the last: %s", i, got)
		}
		var refused *pgconn.PgError
		if _, err := d.Exec(t.Context(), fmt.Sprintf("SELECT nextval('insta%d.table_id_seq')", i)); !errors.As(err, &refused) || refused.Code != "2200H" {
			t.Errorf("the old sequence gives more: %v", err)
		}
	}
	// Above what is an hour ahead, and not what can be no id of the function.
	if got := a.one(t, fmt.Sprintf("SELECT (insta1.next_id() - %d)::text", hour)); strings.HasPrefix(got, "-") || len(got) > 12 {
		t.Errorf("%s above the highest", got)
	}
	a.must(t, "SET ROLE "+old+"; INSERT INTO insta1.photo (x) VALUES (12); RESET ROLE")
	before = describe(t, a, b)
	if again := mustAdopt(t, servers); again.Steps() != 0 {
		t.Errorf("%d steps the second time", again.Steps())
	}
	if p := mustInit(t, servers, setup.Wish{}); p.Steps() != 0 || !slices.Equal(before, describe(t, a, b)) {
		t.Errorf("%d steps of init", p.Steps())
	}
}

// What cannot be taken over as a whole is left as it is as a whole.
func TestAdoptRefuses(t *testing.T) {
	a, b := newDatabase(t), newDatabase(t)
	a.must(t, published(0)+published(1))
	b.must(t, published(3))
	wishes := adoptWish()
	attempt := func(want string, spoil, mend string) {
		t.Helper()
		b.must(t, spoil)
		refuses(t, want, func() error { _, err := tryAdopt(t.Context(), serversOf(a, b), wishes, time.Minute); return err }, a, b)
		b.must(t, mend)
	}
	body := func(old, with string) string {
		def := b.one(t, "SELECT pg_get_functiondef('insta3.next_id()'::regprocedure)")
		if !strings.Contains(def, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(def, old, with, 1)
	}
	mended := body("shard_id", "shard_id")
	attempt("insta3.next_id: its ids say shard 4", body(":= 3", ":= 4"), mended)
	attempt("its ids have the layout time:41@1ms,shard:13,seq:10;epoch=2017-03-11T16:13:41.721Z, not", body("1314220021721", "1489248821721"), mended)
	attempt("which has 12 bits"[6:], body("<< 10", "<< 12"), mended)
	attempt("it is not understood", body("clock_timestamp()", "'2020-01-01'::timestamptz"), mended)
	attempt("there is no sequence insta3.missing", body("table_id_seq", "missing"), mended)
	attempt("is the default of a column too", "CREATE TABLE insta3.t (n bigint DEFAULT nextval('insta3.table_id_seq'))", "DROP TABLE insta3.t")
	attempt("counts down", "ALTER SEQUENCE insta3.table_id_seq INCREMENT -1 MINVALUE -1000", "ALTER SEQUENCE insta3.table_id_seq INCREMENT 1")
	attempt("draw from one sequence", published(4)+strings.ReplaceAll(body("insta3.table_id_seq", "insta4.table_id_seq"), "x", "x"), "DROP SCHEMA insta4 CASCADE;"+mended)
	attempt("shard 1 is there twice, on a in insta1 and on b in insta1", published(1), "DROP SCHEMA insta1 CASCADE")

	wishes.Count = 3
	attempt("there is a shard 3, so the cluster has at least 4 shards, not 3", "", "")
	wishes = setup.Wish{}
	attempt(setup.ErrNoKeys.Error(), "", "")
	wishes = setup.Wish{Keys: "mod"}
	attempt("3 schemas were found, up to shard 3; say how many shards the cluster has", "", "")
	wishes = setup.Wish{Keys: "mod", Schemas: "user%d"}
	attempt("there is no schema like user%d", "", "")
	wishes = setup.Wish{Keys: "mod", Layout: firn.MustLayout("instagram;epoch=2020-01-01T00:00:00Z")}
	attempt("not time:41@1ms,shard:13,seq:10;epoch=2020", "", "")
	wishes = adoptWish()
	b.must(t, "INSERT INTO insta3.photo VALUES (9000000000000000000)")
	// Found when nobody writes any more: this schema stays as it was.
	_, err := tryAdopt(t.Context(), serversOf(a, b), wishes, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "nothing can be above it") {
		t.Errorf("%v", err)
	}
	b.must(t, "DELETE FROM insta3.photo WHERE id = 9000000000000000000; INSERT INTO insta3.photo (x) VALUES (1)")
	if p := mustAdopt(t, serversOf(a, b)); len(p.Servers[0].Schemas) != 0 || len(p.Servers[1].Schemas) != 1 || p.Plan.Keys.Shards() != 8 {
		t.Errorf("%+v of %d shards", p.Servers, p.Plan.Keys.Shards())
	}
}

// A transaction that has drawn, and goes on, is waited for, and named.
func TestAdoptWaits(t *testing.T) {
	t.Parallel()
	a, holder := newDatabase(t), (*database)(nil)
	a.must(t, published(0))
	holder = connect(t, a.url)
	holder.must(t, "BEGIN; SELECT insta0.next_id()")
	_, err := tryAdopt(t.Context(), serversOf(a), adoptWish(), time.Second)
	var busy *setup.BusyError
	if !errors.As(err, &busy) || busy.Schema != "insta0" || !strings.Contains(busy.Holders, fmt.Sprint(holder.PgConn().PID())) {
		t.Fatalf("%v", err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := tryAdopt(context.Background(), serversOf(a), adoptWish(), time.Minute)
		result <- err
	}()
	old := holder.one(t, "SELECT count(insta0.next_id())::text FROM generate_series(1, 3000)")
	holder.must(t, "COMMIT")
	if err := <-result; err != nil || old != "3000" {
		t.Fatalf("%v", err)
	}
}

// Eight writers go on while schemas are taken over: no insert fails, and what comes
// after is there once.
func TestAdoptUnderLoad(t *testing.T) {
	a := newDatabase(t)
	a.must(t, published(0)+published(1)+"CREATE TABLE public.elsewhere (id bigint)")
	forms := []struct {
		sql   string
		apart bool // it draws outside of an insert into the shard
	}{
		{"INSERT INTO insta0.photo (x) VALUES (1)", false},
		{"INSERT INTO insta0.photo (x) VALUES (1); INSERT INTO insta1.photo (x) VALUES (1)", false},
		{"INSERT INTO insta0.photo (x) SELECT generate_series(1, 200)", false},
		{"INSERT INTO insta1.photo (id, x) SELECT insta1.next_id(), 2 FROM generate_series(1, 50)", false},
		{"BEGIN; INSERT INTO insta1.photo (x) VALUES (3); SELECT pg_sleep(0.02); INSERT INTO insta1.photo (x) VALUES (4); COMMIT", false},
		{"SELECT FROM insta0.photo WHERE id = (SELECT max(id) FROM insta0.photo) FOR UPDATE", false},
		{"DO $$ DECLARE i bigint; BEGIN i := insta0.next_id(); PERFORM pg_sleep(0.001); INSERT INTO insta0.photo VALUES (i, 5); END $$", true},
		{"WITH i AS (SELECT insta1.next_id() AS id) INSERT INTO public.elsewhere SELECT id FROM i", true},
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	var written [8]atomic.Int64
	for i, f := range forms {
		c := connect(t, a.url)
		writers.Go(func() {
			for pause := loadPause(); ctx.Err() == nil; time.Sleep(pause) {
				_, err := c.PgConn().Exec(context.Background(), f.sql).ReadAll()
				var refused *pgconn.PgError
				if f.apart && errors.As(err, &refused) && refused.Code == "2200H" {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", f.sql, err)
					return
				}
				written[i].Add(1)
			}
		})
	}
	wait := func(n int64) {
		deadline := time.Now().Add(time.Minute)
		for i := range written {
			for from := written[i].Load(); written[i].Load() < from+n && time.Now().Before(deadline) && !t.Failed(); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	wait(20)
	_, err := tryAdopt(t.Context(), serversOf(a), adoptWish(), time.Minute)
	mark := a.one(t, "SELECT pg_current_xact_id()::text")
	wait(20)
	time.Sleep(1500 * time.Millisecond) // the clock is where the new generators began
	wait(20)
	stop()
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	// The old function repeats ids by itself. What was written after the mark is new.
	got := a.one(t, fmt.Sprintf(`
WITH ids AS (SELECT id, xmin::text::bigint AS x FROM insta0.photo UNION ALL SELECT id, xmin::text::bigint FROM insta1.photo UNION ALL SELECT id, xmin::text::bigint FROM public.elsewhere),
repeated AS (SELECT id FROM ids GROUP BY id HAVING count(*) > 1 AND max(x) > %[1]s)
SELECT format('%%s of %%s', (SELECT count(*) FROM repeated), (SELECT count(*) FROM ids WHERE x > %[1]s))`, mark))
	t.Logf("%s new ids are there twice", got)
	if !strings.HasPrefix(got, "0 of ") || got == "0 of 0" {
		t.Errorf("%s new ids are there twice", got)
	}
}

// A process that is killed at any moment leaves what the next one takes over. Programs
// write meanwhile. make full has more moments.
func TestAdoptKilled(t *testing.T) {
	schemas := published(0) + published(1) + published(2) + published(3) + published(4) + published(5)
	a := newDatabase(t)
	a.must(t, schemas)
	mustAdopt(t, serversOf(a))
	want := describe(t, a)
	moments := []string{
		"SELECT 1 FROM pg_namespace WHERE nspname = 'firn'",
		"SELECT 1 FROM pg_class WHERE relname = 'next_id_offset' AND relnamespace = to_regnamespace('insta4')",
	}
	if testserver.Long() {
		moments = append(moments, "SELECT 1 FROM pg_class WHERE relname = 'next_id_offset'")
	}
	for _, after := range moments {
		a := newDatabase(t)
		a.must(t, schemas)
		kill(t, "adopt", after, a)
		for n := range 6 {
			a.must(t, fmt.Sprintf("INSERT INTO insta%d.photo (x) VALUES (1)", n))
		}
		mustAdopt(t, serversOf(a))
		for n := range 6 {
			a.must(t, fmt.Sprintf("INSERT INTO insta%[1]d.photo (x) VALUES (1)", n))
			if got := a.one(t, fmt.Sprintf("SELECT format('%%s of %%s', count(DISTINCT id), count(*)) FROM insta%d.photo", n)); got != "12 of 12" {
				t.Errorf("killed after %q: %s ids", after, got)
			}
		}
		if got := describe(t, a); !slices.Equal(got, want) {
			t.Errorf("killed after %q: it differs:\n%s\n%s", after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A server that dies midway stops only itself. What it had taken over stays so, and the
// next one goes on from there.
func TestAdoptServerDies(t *testing.T) {
	t.Parallel()
	dying := testserver.Postgres(t)
	a, b := newDatabase(t), connect(t, dying.URL())
	a.must(t, published(0)+published(1))
	b.must(t, published(2)+published(3)+published(4))
	holder := connect(t, dying.URL())
	holder.must(t, "BEGIN; SELECT insta3.next_id()") // it comes no further than this
	result := make(chan error, 1)
	go func() {
		_, err := tryAdopt(context.Background(), serversOf(a, b), adoptWish(), time.Minute)
		result <- err
	}()
	for deadline := time.Now().Add(time.Minute); b.one(t, "SELECT count(*)::text FROM pg_locks WHERE NOT granted") == "0"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits for insta3")
		}
	}
	dying.Kill(t)
	var in *setup.ShardError
	if err := <-result; !errors.As(err, &in) || in.Server != "b" || in.Shard != 3 || strings.Contains(err.Error(), "server a") {
		t.Fatalf("%v", err)
	}
	if n := a.one(t, "SELECT count(*)::text FROM firn.shard WHERE state = 'open'"); n != "2" {
		t.Errorf("%s shards on the server that lived", n)
	}
	dying.Start(t)
	again := connect(t, dying.URL())
	again.must(t, "INSERT INTO insta2.photo (x) VALUES (11); INSERT INTO insta3.photo (x) VALUES (11)") // the new function, and the old
	if p := mustAdopt(t, serversOf(a, &database{url: dying.URL()})); len(p.Servers[0].Schemas) != 0 || len(p.Servers[1].Schemas) != 2 {
		t.Errorf("left were %+v", p.Servers)
	}
	for n := 2; n < 5; n++ {
		again.must(t, fmt.Sprintf("INSERT INTO insta%d.photo (x) VALUES (12)", n))
	}
	if got := again.one(t, "SELECT format('%s of %s', count(DISTINCT id), count(*)) FROM (TABLE insta2.photo UNION ALL TABLE insta3.photo UNION ALL TABLE insta4.photo) AS p"); got != "35 of 35" {
		t.Errorf("%s ids", got)
	}
}

// A right that is taken away midway stops at its schema, which stays as it was; those
// before it are taken over.
func TestAdoptRights(t *testing.T) {
	a := newDatabase(t)
	role := "owner_" + a.Config().Database
	a.must(t, "DROP ROLE IF EXISTS "+role+"; CREATE ROLE "+role+" LOGIN; GRANT CREATE ON DATABASE "+a.Config().Database+" TO "+role)
	owner := connect(t, strings.Replace(a.url, "t@", role+"@", 1))
	owner.must(t, published(0)+published(1))
	grant := "GRANT SELECT, UPDATE ON insta1.theirs TO " + role
	a.must(t, "CREATE TABLE insta1.theirs (id bigint PRIMARY KEY DEFAULT insta1.next_id())")
	w := adoptWish()
	w.Roles = []string{role}
	refuses(t, "it needs SELECT and UPDATE there", func() error { _, err := tryAdopt(t.Context(), serversOf(owner), w, time.Minute); return err }, a)
	a.must(t, grant)
	s, err := setup.Open(t.Context(), serversOf(owner), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Adopt(t.Context(), w, "next_id")
	if err != nil {
		t.Fatal(err)
	}
	a.must(t, "REVOKE ALL ON insta1.theirs FROM "+role)
	err = p.Run(t.Context(), time.Minute, new(atomic.Int64))
	s.Close()
	var in *setup.ShardError
	if !errors.As(err, &in) || in.Shard != 1 || !strings.Contains(err.Error(), "permission denied for table theirs") {
		t.Fatalf("%v", err)
	}
	if got := owner.one(t, "SELECT format('%s %s %s', count(*), min(shard), to_regclass('insta1.next_id_offset') IS NULL) FROM firn.shard"); got != "1 0 t" {
		t.Errorf("shards, the lowest, and whether the next is as it was: %s", got)
	}
	owner.must(t, "INSERT INTO insta1.photo (x) VALUES (11)") // by the old function
	a.must(t, grant)
	if again, err := tryAdopt(t.Context(), serversOf(owner), w, time.Minute); err != nil || len(again.Servers[0].Schemas) != 1 {
		t.Fatalf("%+v, %v", again, err)
	}
	owner.must(t, "INSERT INTO insta1.photo (x) VALUES (12)")
}

// A cluster whose ids have ended, or begin in the future, is not taken over.
func TestAdoptWithoutLife(t *testing.T) {
	for epoch, want := range map[string]string{"315532800000": "ended on 2014-11-03", "7258118400000": "begins at 2200-01-01"} {
		a := newDatabase(t)
		a.must(t, strings.ReplaceAll(published(0), "1314220021721", epoch))
		ms, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		wish := adoptWish()
		wish.Layout = firn.MustLayout("instagram;epoch=" + time.UnixMilli(ms).UTC().Format(time.RFC3339))
		refuses(t, want, func() error { _, err := tryAdopt(t.Context(), serversOf(a), wish, time.Minute); return err }, a)
	}
}
