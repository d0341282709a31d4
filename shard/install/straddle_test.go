package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/install"
)

// stop is a function that waits for whoever holds the advisory lock of a number.
const stop = `
CREATE SCHEMA test;
CREATE FUNCTION test.stop(x bigint, n integer) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
$$ BEGIN PERFORM pg_advisory_lock(n), pg_advisory_unlock(n); RETURN x; END $$;
`

// straddling makes shard 0, whose draws stop where the text is replaced, an hour ahead of the clock.
func straddling(t *testing.T, name string, replace ...string) (a site) {
	t.Helper()
	var sql strings.Builder
	if err := install.WriteSQL(&sql, firn.MustLayout("sharded"), install.Definition{Schema: "insta0"}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if n := strings.Count(sql.String(), replace[i]); n != 1 {
			t.Fatalf("%q is there %d times", replace[i], n)
		}
	}
	a = site{name, connect(t, testdb.New(t, testserver.Shared(t, logical), name)), nil}
	a.must(t, stop+strings.NewReplacer(replace...).Replace(sql.String())+"; "+opened)
	return a
}

// draws has another session draw, and returns what it draws when it has come as far as a stop.
func (s site) draws(t *testing.T, sql string, n int) <-chan int64 {
	t.Helper()
	c := connect(t, s.Config().ConnString())
	drawn := make(chan int64, 1)
	go func() {
		var id int64
		if err := c.QueryRow(context.Background(), sql, pgx.QueryExecModeExec).Scan(&id); err != nil {
			t.Error(err)
		}
		drawn <- id
	}()
	s.stopped(t, n)
	return drawn
}

// stopped waits until somebody waits at a stop.
func (s site) stopped(t *testing.T, n int) {
	t.Helper()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		if err := s.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = $1 AND NOT granted", n).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}

func (s site) number(t *testing.T, sql string) (n int64) {
	t.Helper()
	if err := s.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&n); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return n
}

// TestStraddleMany: a draw of many that read the offset before a close, and draws after the open, does
// not count.
func TestStraddleMany(t *testing.T) {
	const first = `	a := pg_catalog.pg_sequence_last_value("offset");`
	a := straddling(t, "straddle_many", first, first+" PERFORM test.stop(0, 41);")
	a.must(t, "SELECT pg_advisory_lock(41)")
	drawn := a.draws(t, "SELECT min(i) FROM insta0.next_ids(3) AS i", 41)
	a.must(t, "SELECT firn.close(0); SELECT firn.open_at(0, 0)")
	other := a.number(t, "SELECT insta0.next_id()")
	a.must(t, "SELECT pg_advisory_unlock(41)")
	if id := <-drawn; id <= other {
		t.Errorf("%d after %d", id, other)
	}
}

// TestStraddleOpen: a draw that took its number while the shard was closed does not count when the shard
// is open again, also where the counter alone has come as far as the shard is opened at: what is between
// the close and the open is another server's.
func TestStraddleOpen(t *testing.T) {
	const first = "firn.id(%4$L::regclass, %3$s, pg_catalog.pg_sequence_last_value(%4$L::regclass), pg_catalog.nextval(%5$L::regclass),"
	a := straddling(t, "straddle_open", first, "firn.id(%4$L::regclass, %3$s, test.stop(pg_catalog.pg_sequence_last_value(%4$L::regclass), 42), test.stop(pg_catalog.nextval(%5$L::regclass), 43),")
	a.must(t, "SELECT pg_advisory_lock(42), pg_advisory_lock(43)")
	drawn := a.draws(t, "SELECT insta0.next_id()", 42)
	bound := a.number(t, "SELECT firn.close(0)")
	a.must(t, "SELECT pg_advisory_unlock(42)")
	a.stopped(t, 43)
	a.must(t, "SELECT nextval('insta0.next_id_counter') FROM generate_series(1, 5)")
	a.must(t, fmt.Sprintf("SELECT firn.open_at(0, %d)", bound+3))
	a.must(t, "SELECT pg_advisory_unlock(43)")
	if id, floor := <-drawn, a.number(t, fmt.Sprintf("SELECT firn.pack(%d, 0)", bound+3)); id < floor {
		t.Errorf("%d is below %d, at which the shard was opened", id, floor)
	}
}
