package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// tables have keys of every kind, and none.
const tables = `
CREATE TABLE insta0.numbers (id bigint PRIMARY KEY, v text, f float8 DEFAULT random(), at timestamptz DEFAULT now(), i interval DEFAULT '1 day 2 hours', m money DEFAULT 7, gone text);
CREATE TABLE insta0.texts ("the key" text COLLATE "C" PRIMARY KEY, v text);
CREATE TABLE insta0.uuids (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v text);
CREATE TABLE insta0.bytes (id bytea PRIMARY KEY, v text);
CREATE TABLE insta0.composite (a integer, b varchar(40), c timestamptz, v text, PRIMARY KEY (b, c, a));
CREATE TABLE insta0.indexed (v text, k numeric NOT NULL); CREATE UNIQUE INDEX k ON insta0.indexed (k); ALTER TABLE insta0.indexed REPLICA IDENTITY USING INDEX k;
CREATE TABLE insta0.parts (id bigint, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE insta0.parts_1 PARTITION OF insta0.parts FOR VALUES FROM (0) TO (40);
CREATE TABLE insta0.parts_2 PARTITION OF insta0.parts DEFAULT;
CREATE TABLE insta0.keyless (v text, n integer); ALTER TABLE insta0.keyless REPLICA IDENTITY FULL;
CREATE TABLE insta0.parent (id bigint PRIMARY KEY, v text); CREATE TABLE insta0.child (PRIMARY KEY (id)) INHERITS (insta0.parent);
CREATE TABLE insta0.empty (id bigint PRIMARY KEY);
ALTER TABLE insta0.numbers DROP COLUMN gone;
`

const rows = `
INSERT INTO insta0.numbers (id, v) SELECT n, repeat('x', n) FROM generate_series(1, 95) AS n;
INSERT INTO insta0.texts SELECT chr(n) || E'\\ "{,}' || n, CASE WHEN n % 3 > 0 THEN 'y' END FROM generate_series(33, 120) AS n;
INSERT INTO insta0.uuids (v) SELECT 'z' FROM generate_series(1, 50);
INSERT INTO insta0.bytes SELECT sha256(n::text::bytea), 'b' FROM generate_series(1, 50) AS n;
INSERT INTO insta0.composite SELECT n % 3, 'b' || n % 7, '2026-11-01Z'::timestamptz + n * interval '1 us', 'c' FROM generate_series(1, 60) AS n;
INSERT INTO insta0.indexed SELECT 'i', n / 7.0 FROM generate_series(1, 50) AS n;
INSERT INTO insta0.parts SELECT n, 'p' FROM generate_series(0, 79) AS n;
INSERT INTO insta0.keyless SELECT 'k' || n % 10, n % 20 FROM generate_series(1, 60) AS n;
INSERT INTO insta0.parent VALUES (1, 'of the parent'); INSERT INTO insta0.child VALUES (1, 'of the child'), (2, 'of the child');
`

// copyRows makes b's shard 0 what a's is. Fences and triggers are of no concern.
func copyRows(t *testing.T, a, b *site) {
	t.Helper()
	names, err := relations(t.Context(), a.Conn, "insta0")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range names {
		var text strings.Builder
		if _, err := a.PgConn().CopyTo(t.Context(), &text, "COPY "+r.sql()+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.PgConn().CopyFrom(t.Context(), strings.NewReader(text.String()), "COPY "+r.sql()+" FROM STDIN"); err != nil {
			t.Fatal(err)
		}
	}
}

// inSmall has many ranges in little time.
var inSmall = VerifyOptions{Rows: 10, Limit: 20 * time.Second, Sure: 100 * time.Millisecond}

// TestVerify finds a copy alike, and each way in which it may not be.
func TestVerify(t *testing.T) {
	a, b := pair(t, 1)
	a.must(t, tables+rows)
	b.must(t, "CREATE SCHEMA insta0;"+tables)
	copyRows(t, a, b)
	a.must(t, fmt.Sprintf("ALTER DATABASE %s SET TimeZone = 'Asia/Tokyo'; ALTER DATABASE %[1]s SET bytea_output = 'escape'", a.Server.Config.Database))
	var told int64
	o := inSmall
	o.Done = func(rows int64) { told += rows }
	seen, err := Verify(t.Context(), a.Server, b.Server, "insta0", o)
	if want := (Verified{Tables: 12, Ranges: 58, Rows: 536, Again: 0}); err != nil || seen != want || told != want.Rows {
		t.Errorf("%+v, %d told, %v; want %+v", seen, told, err, want)
	}
	if number, err := counts(t.Context(), a.Conn, "insta0"); err != nil || number["child"] != 2 || number["parent"] != 1 || number["empty"] != 0 || len(number) != 12 {
		t.Errorf("%v, %v", number, err)
	}
	for _, tt := range []struct{ harm, table, key, what string }{
		{"UPDATE numbers SET v = 'X' WHERE id = 1", "numbers", "{1}", "differs"},
		{"UPDATE numbers SET f = f + 1e-13 WHERE id = 95", "numbers", "{95}", "differs"},
		{"DELETE FROM numbers WHERE id = 50", "numbers", "{50}", "is missing on the target"},
		{"INSERT INTO numbers VALUES (96)", "numbers", "{96}", "is only on the target"},
		{"INSERT INTO numbers VALUES (-1)", "numbers", "{-1}", "is only on the target"},
		{"UPDATE texts SET v = '' WHERE v IS NULL AND \"the key\" < '&'", "texts", `{"!\\ \"{,}33"}`, "differs"},
		{"DELETE FROM uuids", "uuids", "", "is missing on the target"},
		{"UPDATE bytes SET v = 'c' WHERE id = sha256('7')", "bytes", `{"\\x7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"}`, "differs"},
		{"UPDATE composite SET c = c + interval '1 us' WHERE a = 1 AND b = 'b4' AND c < '2026-11-01 00:00:00.00001Z'", "composite", "", ""},
		{"UPDATE indexed SET v = NULL WHERE k > 7", "indexed", "{7.1428571428571429}", "differs"},
		{"UPDATE parts SET v = 'q' WHERE id = 39", "parts_1", "{39}", "differs"},
		{"UPDATE parent SET v = 'q' WHERE id = 2", "child", "{2}", "differs"},
		{"INSERT INTO empty VALUES (3)", "empty", "{3}", "is only on the target"},
		{"UPDATE keyless SET n = n + 1 WHERE v = 'k3'", "keyless", "", ""},
		{"INSERT INTO keyless VALUES ('k3', 3)", "keyless", "", ""},
		{"DELETE FROM keyless", "keyless", "", "is missing on the target"},
	} {
		b.must(t, "BEGIN; SET LOCAL search_path = insta0; "+tt.harm+"; COMMIT")
		_, err := Verify(t.Context(), a.Server, b.Server, "insta0", inSmall)
		var d *DifferentError
		if !errors.As(err, &d) || d.Table != tt.table || tt.key != "" && d.Key != tt.key || tt.what != "" && d.What != tt.what {
			t.Errorf("%s: %v", tt.harm, err)
		}
		b.must(t, "TRUNCATE insta0.numbers, insta0.texts, insta0.uuids, insta0.bytes, insta0.composite, insta0.indexed, insta0.parts, insta0.keyless, insta0.parent, insta0.child, insta0.empty")
		copyRows(t, a, b)
	}
	if got, err := counts(t.Context(), b.Conn, "insta0"); err != nil || compareCounts(must(counts(t.Context(), a.Conn, "insta0")), got) != nil {
		t.Errorf("%v, %v", got, err)
	}
	b.must(t, "DELETE FROM ONLY insta0.parent; DROP TABLE insta0.empty")
	var different *CountsError
	if err := compareCounts(must(counts(t.Context(), a.Conn, "insta0")), must(counts(t.Context(), b.Conn, "insta0"))); !errors.As(err, &different) || !slices.Equal(different.Tables, []string{"empty", "parent"}) {
		t.Errorf("%v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// follow has b's shard 0 follow a's.
func follow(t *testing.T, a, b *site) (stream string) {
	t.Helper()
	stream = "firn_move_" + a.Server.Config.Database
	a.must(t, "CREATE PUBLICATION "+stream+" FOR TABLE insta0.numbers, insta0.keyless")
	b.must(t, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s' PUBLICATION %[1]s", stream, a.reached()))
	b.eventually(t, "SELECT (count(*) = 2 AND bool_and(srsubstate = 'r'))::text FROM pg_subscription_rel", "true")
	return stream
}

// TestVerifyWhileItServes: rows that are written all the time are no difference, and one
// that is wrong among them is found.
func TestVerifyWhileItServes(t *testing.T) {
	a, b := pair(t, 1)
	a.must(t, tables+rows)
	b.must(t, "CREATE SCHEMA insta0;"+tables)
	copyRows(t, a, b)
	b.must(t, "TRUNCATE insta0.numbers, insta0.keyless")
	o := inSmall
	o.Limit = 2 * time.Minute // a loaded machine copies more slowly than these writers write
	o.Stream = follow(t, a, b)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i, sql := range []string{
		"UPDATE insta0.numbers SET v = right(v || 'a', 40) WHERE id = 17",
		"WITH x AS (DELETE FROM insta0.numbers WHERE id = 40 RETURNING id) INSERT INTO insta0.numbers SELECT 40 WHERE NOT EXISTS (SELECT FROM x)",
		"INSERT INTO insta0.numbers SELECT 1 + max(id) FROM insta0.numbers",
		"UPDATE insta0.keyless SET n = n + 1 WHERE v = 'k5'",
	} {
		c, err := pgx.ConnectConfig(ctx, a.Server.Config)
		if err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			defer c.Close(context.Background())
			for ctx.Err() == nil {
				began := time.Now()
				if _, err := c.Exec(ctx, sql); err != nil && ctx.Err() == nil {
					t.Errorf("writer %d: %v", i, err)
				}
				time.Sleep(time.Millisecond + time.Since(began)) // on a slow machine the target is slow too
			}
		})
	}
	var again int64
	for begun := time.Now(); again == 0 && time.Since(begun) < time.Minute; {
		seen, err := Verify(t.Context(), a.Server, b.Server, "insta0", o)
		if err != nil {
			t.Fatal(err)
		}
		again += seen.Again
	}
	if again == 0 {
		t.Error("nothing differed at first sight, so the test has tested nothing")
	}
	b.must(t, "UPDATE insta0.numbers SET v = 'wrong' WHERE id = 19")
	_, err := Verify(t.Context(), a.Server, b.Server, "insta0", o)
	var d *DifferentError
	if !errors.As(err, &d) || d.Key != "{19}" {
		t.Errorf("%v", err)
	}
	b.must(t, "DELETE FROM insta0.numbers WHERE id = 17; ALTER SUBSCRIPTION "+o.Stream+" DISABLE")
	o.Limit = 300 * time.Millisecond
	_, err = Verify(t.Context(), a.Server, b.Server, "insta0", o)
	var u *UnsettledError
	if !errors.As(err, &u) {
		t.Errorf("%v", err)
	}
	stop()
	writers.Wait()

	// Without a stream nothing excuses a row that changes on the target.
	a.must(t, "DELETE FROM insta0.numbers WHERE id <> 5; TRUNCATE insta0.keyless")
	b.must(t, "TRUNCATE insta0.numbers, insta0.keyless; ALTER SUBSCRIPTION "+o.Stream+" SET (slot_name = NONE); DROP SUBSCRIPTION "+o.Stream)
	copied, target := o, dialConfig(t, b.Server.Config)
	copied.Stream = ""
	ctx, stop = context.WithCancel(t.Context())
	writers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			target.Exec(ctx, "INSERT INTO insta0.numbers VALUES (5, $1) ON CONFLICT (id) DO UPDATE SET v = excluded.v", fmt.Sprint(n))
		}
	})
	if _, err := Verify(t.Context(), a.Server, b.Server, "insta0", copied); err == nil {
		t.Error("a row that changes on the target alone was found alike")
	}
	stop()
	writers.Wait()
}

// TestSuspect: when a row that was never seen alike is right after all, and when it is
// wrong.
func TestSuspect(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name    string
		changes bool
		looks   []sight // a second apart
		settled bool
		wrong   bool
	}{
		{"alike now", true, []sight{{"b", "b"}}, true, false},
		{"gone from both", true, []sight{{"", ""}}, true, false},
		{"changes on both", true, []sight{{"b", "x"}, {"d", "c"}}, true, false},
		{"changes on both, where that says nothing", false, []sight{{"b", "x"}, {"d", "c"}, {"e", "d"}}, false, false},
		{"changes on the source only", true, []sight{{"b", "x"}, {"c", "x"}, {"d", "x"}, {"e", "x"}}, false, false},
		{"the same for two looks", true, []sight{{"a", "x"}, {"a", "x"}}, false, false},
		{"the same for three", true, []sight{{"a", "x"}, {"a", "x"}, {"a", "x"}}, false, true},
		{"the same for three, after a change", true, []sight{{"b", "x"}, {"a", "x"}, {"a", "x"}}, false, false},
		{"changes on the target only", true, []sight{{"a", ""}, {"a", "y"}}, false, false},
	} {
		s := &suspect{first: sight{"a", "x"}}
		var settled, wrong bool
		for i, look := range tt.looks {
			at := now.Add(time.Duration(i) * time.Second)
			settled = s.see(look, tt.changes, at)
			wrong = !settled && s.wrong(at, 2*time.Second)
			if settled {
				break
			}
		}
		if settled != tt.settled || wrong != tt.wrong {
			t.Errorf("%s: settled %v, wrong %v", tt.name, settled, wrong)
		}
	}
}
