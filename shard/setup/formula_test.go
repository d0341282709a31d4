package setup

import (
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// Spellings of the published function that are in use.
var spellings = map[string]function{
	"as published": {"plpgsql", `
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') % 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
    `, "result"},
	"into first, comments": {"plpgsql", `
declare
  our_epoch constant bigint = 1314220021721; -- 2011-08-24
  seq_id bigint; now_millis bigint;
  shard_id integer default 5;
  result bigint := 0;
begin
  select into seq_id nextval('insta5.table_id_seq'::regclass) % 1024; /* ten bits */
  select into strict now_millis floor(extract(epoch from now()) * 1000);
  result := (now_millis - our_epoch) << 23;
  result := result | (shard_id << 10);
  result := result | (seq_id);
  return result;
end`, ""},
	"assignments": {"plpgsql", `
DECLARE
	now_millis bigint := trunc(date_part('epoch', clock_timestamp()) * 1000)::bigint;
BEGIN
	RETURN ((now_millis - 1314220021721) << 23) | (5::bigint << 10) | (nextval('insta5.table_id_seq') & 1023);
END`, ""},
	"the epoch in seconds, mod": {"plpgsql", `
DECLARE t bigint;
BEGIN
	t := (pg_catalog.date_part('epoch', current_timestamp) * 1000)::bigint - 1314220021 * 1000 - 721;
	result := t << 23 | ((5 % 8192) << 10) | mod(nextval('insta5.table_id_seq'), 1024);
	RETURN;
END;`, "result"},
	"sql": {"sql", `SELECT (((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) + (5 << 10) + (nextval('insta5.table_id_seq') % 1024))::bigint AS id;`, ""},
}

func TestFormula(t *testing.T) {
	for name, f := range spellings {
		g, err := f.formula()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l, err := g.layout()
		if err != nil || l.String() != firn.MustLayout("instagram").String() || g.shard != 5 || g.sequence != "insta5.table_id_seq" {
			t.Errorf("%s: %v %+v: %v", name, l, g, err)
		}
	}
}

// What is not quite the formula is refused.
func TestNoFormula(t *testing.T) {
	published := spellings["as published"]
	for _, change := range []struct{ old, with, want string }{
		{"% 1024", "% 1000", "no power of two"},
		// From left to right: the time would be shifted too.
		{"result | (shard_id << 10)", "result | shard_id << 10", "neither time, shard nor sequence"},
		{"% 1024", "% 512", "modulo 512"},
		{"<< 10", "<< 12", "modulo 1024, and has 12 bits"},
		{"(shard_id << 10)", "((shard_id + random()) << 10)", "random(...) is not known"},
		{"shard_id int := 5", "shard_id int := (SELECT max(n) FROM shards)", `not known`},
		{"| (seq_id)", "", "no part for the sequence"},
		{"result | (shard_id << 10)", "(shard_id << 10)", "no part for the time"},
		{"result | (shard_id << 10)", "result | (shard_id << 10) | (7 << 40)", "two parts for the shard"},
		{"clock_timestamp()", "timestamp '2020-01-01'", "not known"},
		{"END;", "END IF; END;", "it goes on after its end"},
		{"result := result | (seq_id);", "IF true THEN result := 1; END IF;", "not known"},
		{"result | (seq_id)", "result # seq_id", `"#"`},
		{"    result := (now", "    PERFORM pg_sleep(1); result := (now", "not known"},
		{"result | (seq_id)", "result | (seq_id", `where ")" was expected`},
		{"'insta5.table_id_seq'", "'insta5.table_id_seq", "a text does not end"},
		{"shard_id int", "shard_id /* int", "a comment does not end"},
	} {
		f := published
		if f.source = strings.Replace(f.source, change.old, change.with, 1); f.source == published.source {
			t.Fatalf("%q is not there", change.old)
		}
		g, err := f.formula()
		if err == nil {
			_, err = g.layout()
		}
		if err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: %+v, %v; want %q", change.with, g, err, change.want)
		}
	}
	for _, source := range []string{"", "BEGIN", "BEGIN END", "DECLARE x", "BEGIN RETURN 1; RETURN 2; END", "'", "BEGIN x := ; END", "BEGIN RETURN nextval(); END"} {
		if g, err := (function{"plpgsql", source, "result"}).formula(); err == nil {
			t.Errorf("%q: %+v", source, g)
		}
	}
}

func FuzzFormula(f *testing.F) {
	for _, s := range spellings {
		f.Add(s.language, s.source)
	}
	f.Fuzz(func(t *testing.T, language, source string) {
		g, err := function{language, source, "result"}.formula()
		if err == nil {
			g.layout()
		}
	})
}

func TestNumberIn(t *testing.T) {
	for _, tt := range []struct {
		pattern, schema string
		n               int64
		ok              bool
	}{
		{"insta%d", "insta5", 5, true},
		{"insta%d", "insta05", 0, false},
		{"insta%d", "insta", 0, false},
		{"insta%d", "insta-1", 0, false},
		{"u_%d_x", "u_12_x", 12, true},
		{"u_%d_x", "u_12", 0, false},
		{"insta%d", "insta99999999999", 0, false},
		{"insta%d", "other5", 0, false},
	} {
		if n, ok := numberIn(tt.pattern, tt.schema); ok != tt.ok || ok && n != tt.n {
			t.Errorf("%s in %s: %d %v", tt.pattern, tt.schema, n, ok)
		}
	}
}
