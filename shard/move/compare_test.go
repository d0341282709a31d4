package move

import (
	"testing"

	"github.com/firn-id/firn/shard/check"
)

// TestCompare counts the rows that either of two copies has alone.
func TestCompare(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	a.must(t, tables+rows)
	b.must(t, "CREATE SCHEMA insta0;"+tables)
	copyRows(t, a, b)
	compared := func() check.Comparison {
		t.Helper()
		got, err := Compare(t.Context(), a.Server, b.Server, "insta0")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := compared(); got.Lacks() || got.Swapped().Lacks() {
		t.Errorf("two copies that are alike: %+v", got)
	}
	b.must(t, "INSERT INTO insta0.numbers (id) VALUES (-1), (96); DELETE FROM insta0.numbers WHERE id < 4 AND id > 0; UPDATE insta0.numbers SET v = 'q' WHERE id = 50")
	if got := compared(); got.First != 3 || got.Second != 2 || got.Differ != 1 || got.Example != "numbers: row {-1}" || got.Text() != "2 rows and 1 row with another content" {
		t.Errorf("%+v, %s", got, got.Text())
	}
	b.must(t, "TRUNCATE insta0.numbers; INSERT INTO insta0.numbers SELECT * FROM insta0.numbers WHERE false")
	if got := compared(); got.Lacks() || !got.Swapped().Lacks() || got.First != 95 {
		t.Errorf("the first has more: %+v", got)
	}
	// As many rows, and others.
	b.must(t, "UPDATE insta0.keyless SET n = n + 100 WHERE ctid = (SELECT min(ctid) FROM insta0.keyless); INSERT INTO insta0.keyless SELECT * FROM insta0.keyless WHERE n > 99")
	if got := compared(); got.First != 96 || got.Second != 2 || !got.Lacks() {
		t.Errorf("a table without a key: %+v", got)
	}
	b.must(t, "TRUNCATE insta0.keyless; DROP TABLE insta0.uuids; ALTER TABLE insta0.bytes ADD late integer; CREATE TABLE insta0.late AS SELECT generate_series(1, 7)")
	a.must(t, "CREATE TABLE insta0.none (n integer)")
	if got := compared(); got.First != 95+60+50 || got.Second != 7 || len(got.Unlike) != 1 || got.Text() != "7 rows and tables whose rows were not compared, as their columns differ (bytes)" {
		t.Errorf("other tables: %+v, %s", got, got.Text())
	}
}
