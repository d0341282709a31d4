package main

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// TestCompare: what is not as it was acknowledged is found, and counted as what it is.
func TestCompare(t *testing.T) {
	c, err := pgx.Connect(t.Context(), testserver.Shared(t, testserver.Postgres).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE SCHEMA judged; CREATE TABLE judged.item (id bigint PRIMARY KEY, n bigint); CREATE TABLE judged.log (id bigint PRIMARY KEY, item bigint)")
	for _, tt := range []struct {
		name string
		harm string
		know func(*writer)
		want verdict
	}{
		{"as it should be", "SELECT", func(*writer) {}, verdict{Rows: 6}},
		{"a row is gone", "DELETE FROM judged.item WHERE id = 1", func(*writer) {}, verdict{Rows: 5, Lost: 1}},
		{"a row of the log is gone", "DELETE FROM judged.log WHERE id = 11", func(*writer) {}, verdict{Rows: 5, Lost: 1}},
		{"a change is gone", "UPDATE judged.item SET n = 1 WHERE id = 2", func(*writer) {}, verdict{Rows: 6, Wrong: 1}},
		{"a deleted row is back", "INSERT INTO judged.item VALUES (9, 0)", func(*writer) {}, verdict{Rows: 7, Extra: 1}},
		{"nobody knows whether it was made", "DELETE FROM judged.item WHERE id = 4; DELETE FROM judged.log WHERE id = 14", func(*writer) {}, verdict{Rows: 4}},
		{"nobody knows, and it is neither", "UPDATE judged.item SET n = 7 WHERE id = 4", func(*writer) {}, verdict{Rows: 6, Wrong: 1}},
		{"an id twice", "SELECT", func(w *writer) { w.ids = append(w.ids, 14, 14) }, verdict{Rows: 6, Repeated: 1, Unordered: 1}},
		{"an id below the last", "SELECT", func(w *writer) { w.ids = append(w.ids, 10) }, verdict{Rows: 6, Unordered: 1}},
	} {
		exec("TRUNCATE judged.item, judged.log; INSERT INTO judged.item VALUES (1, 0), (2, 2), (3, 5), (4, 0); INSERT INTO judged.log VALUES (11, 1), (14, 4);" + tt.harm)
		w := &writer{
			items: map[int64]int64{1: 0, 2: 2, 3: 5}, logs: map[int64]int64{11: 1},
			maybe: map[int64][]int64{4: {0, gone}, 14: {4, gone}}, ids: []int64{1, 11},
		}
		tt.know(w)
		if got, err := compare(t.Context(), c, "judged", []*writer{w}); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}
