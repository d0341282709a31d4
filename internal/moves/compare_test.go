package main

import (
	"strings"
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
		if _, err := c.Exec(t.Context(), strings.ReplaceAll(sql, "SCHEMA.", "judged."), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE SCHEMA judged; CREATE FUNCTION SCHEMA.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';` + tables)
	nothing := func(*writer) {}
	for _, tt := range []struct {
		name string
		harm string
		know func(*writer)
		want verdict
	}{
		{"as it should be", "SELECT", nothing, verdict{Rows: 10}},
		{"a row is gone", "DELETE FROM SCHEMA.item WHERE id = 1", nothing, verdict{Rows: 9, Lost: 1}},
		{"a row of the log is gone", "DELETE FROM SCHEMA.log WHERE id = 11", nothing, verdict{Rows: 9, Lost: 1}},
		{"a change is gone", "UPDATE SCHEMA.item SET n = 1 WHERE id = 2", nothing, verdict{Rows: 10, Wrong: 1}},
		{"a deleted row is back", "INSERT INTO SCHEMA.item VALUES (9, 1, 0, '')", nothing, verdict{Rows: 11, Extra: 1}},
		{"a long value is gone", "UPDATE SCHEMA.page SET body = '' WHERE id = 21", nothing, verdict{Rows: 10, Wrong: 1}},
		{"a key is the old one", "UPDATE SCHEMA.seat SET seat = 30 WHERE seat = 31", nothing, verdict{Rows: 10, Lost: 1, Extra: 1}},
		{"a row is in two partitions", "INSERT INTO SCHEMA.event VALUES (41, 2, 1, 0)", nothing, verdict{Rows: 11, Extra: 1, Wrong: 1}},
		{"a truncated table is not empty", "INSERT INTO SCHEMA.draft VALUES (51, 1)", nothing, verdict{Rows: 11, Extra: 1}},
		{"a receipt is another", "UPDATE SCHEMA.bill SET receipt = 8", nothing, verdict{Rows: 10, Wrong: 1}},
		{"a table of a change of the schema is gone", "SELECT", func(w *writer) { w.rows[row{"late", 71}] = "1" }, verdict{Rows: 10, Lost: 1}},
		{"nobody knows whether it was made", "DELETE FROM SCHEMA.item WHERE id = 4; DELETE FROM SCHEMA.log WHERE id = 14", nothing, verdict{Rows: 8}},
		{"nobody knows, and half of it was made", "DELETE FROM SCHEMA.item WHERE id = 4", nothing, verdict{Rows: 9, Wrong: 1}},
		{"nobody knows, and it is neither", "UPDATE SCHEMA.item SET n = 7 WHERE id = 4", nothing, verdict{Rows: 10, Wrong: 1}},
		{"an id twice", "SELECT", func(w *writer) { w.drawn["id"] = append(w.drawn["id"], 14, 14) }, verdict{Rows: 10, Repeated: 1, Unordered: 1}},
		{"an id below the last", "SELECT", func(w *writer) { w.drawn["id"] = append(w.drawn["id"], 10) }, verdict{Rows: 10, Unordered: 1}},
		{"a number of a sequence twice", "SELECT", func(w *writer) { w.drawn["receipt"] = []int64{7, 7} }, verdict{Rows: 10, Repeated: 1, Unordered: 1}},
	} {
		exec("TRUNCATE SCHEMA.item, SCHEMA.log, SCHEMA.page, SCHEMA.seat, SCHEMA.event, SCHEMA.bill, SCHEMA.draft;" +
			"INSERT INTO SCHEMA.item VALUES (1, 1, 0, ''), (2, 1, 2, ''), (3, 1, 5, ''), (4, 1, 0, ''); INSERT INTO SCHEMA.log VALUES (11, 1, ''), (14, 4, '');" +
			"INSERT INTO SCHEMA.page VALUES (21, 1, 3, 'x'); INSERT INTO SCHEMA.seat VALUES (31, 1, 2); INSERT INTO SCHEMA.event VALUES (41, 1, 1, 0);" +
			"INSERT INTO SCHEMA.bill OVERRIDING SYSTEM VALUE VALUES (61, 7, 1, 100);" + tt.harm)
		w := newKnowledge()
		for r, value := range map[row]string{
			{"item", 1}: "0", {"item", 2}: "2", {"item", 3}: "5", {"log", 11}: "1", {"page", 21}: "3 9dd4e461268c8034f5c8564e155c67a6",
			{"seat", 31}: "2", {"event", 41}: eventValue(1, 0), {"bill", 61}: billValue(7, 100),
		} {
			w.put(r, value)
		}
		w.drawn["id"] = []int64{1, 11}
		w.doubts = []doubt{{
			before: map[row]string{{"item", 4}: gone, {"log", 14}: gone},
			after:  map[row]string{{"item", 4}: "0", {"log", 14}: "4"},
		}}
		tt.know(w)
		if got, err := compare(t.Context(), c, "judged", []*writer{w}); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}
