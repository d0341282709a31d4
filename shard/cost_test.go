package shard_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
)

// BenchmarkGenerator compares what an id costs in the database with nextval and
// with the published function, and a row with each as the default of its primary key with a
// row whose key is uuidv7(), where the server has that. All forms take turns, 15 rounds of
// 100,000 ids in one statement; a figure is the median, less what the statement costs without
// an id.
//
//	go test ./shard -run '^$' -bench Generator -benchtime 1x
func BenchmarkGenerator(b *testing.B) {
	db := newDatabase(b)
	mustExec(b, db.Conn, published)
	mustExec(b, db.Conn, "ALTER FUNCTION insta5.next_id() RENAME TO published_id; CREATE SEQUENCE insta5.plain; SET jit = off")
	mustExec(b, db.Conn, script(b, firn.MustLayout("instagram"), insta(5)))
	const each = "FROM generate_series(1, 100000) g"
	type form struct{ name, sql string }
	forms := []form{
		{"nothing", "SELECT count(g) " + each},
		{"nextval", "SELECT count(nextval('insta5.plain')) " + each},
		{"published", "SELECT count(insta5.published_id()) " + each},
		{"next_id", "SELECT count(insta5.next_id()) " + each},
		{"next_ids", "SELECT count(i) FROM generate_series(1, 100) g, LATERAL insta5.next_ids(1000 + 0 * g) i"},
	}
	defaults := map[string]string{"published": "insta5.published_id()", "next_id": "insta5.next_id()"}
	if query[bool](b, db.Conn, "SELECT to_regprocedure('uuidv7()') IS NOT NULL") {
		defaults["uuidv7"] = "uuidv7()"
	}
	for name, sql := range defaults {
		mustExec(b, db.Conn, "CREATE TABLE insta5.in_"+name+" AS SELECT "+sql+" AS id, 1 AS n WHERE false; ALTER TABLE insta5.in_"+name+" ADD PRIMARY KEY (id), ALTER id SET DEFAULT "+sql)
		forms = append(forms, form{"row-" + name, "INSERT INTO insta5.in_" + name + " (n) SELECT g " + each})
	}
	for b.Loop() {
		times := make([][]float64, len(forms))
		for range 15 {
			for i, f := range forms {
				if row, is := strings.CutPrefix(f.name, "row-"); is {
					mustExec(b, db.Conn, "TRUNCATE insta5.in_"+row)
				}
				times[i] = append(times[i], executionTime(b, db, f.sql)/100000)
			}
		}
		cost := func(i int) float64 {
			slices.Sort(times[i])
			return times[i][len(times[i])/2]
		}
		floor, standard := cost(0), cost(2)-cost(0)
		for i, f := range forms[1:] {
			b.ReportMetric(cost(i+1)-floor, f.name+"-ns")
			b.ReportMetric((cost(i+1)-floor)/standard, f.name+"/published")
		}
	}
}

// executionTime runs sql and returns what the server says it took, in nanoseconds.
func executionTime(b *testing.B, db *database, sql string) float64 {
	b.Helper()
	var plan []byte
	if err := db.QueryRow(b.Context(), "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, FORMAT JSON) "+sql, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		b.Fatal(err)
	}
	var parsed []struct {
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(plan, &parsed); err != nil || len(parsed) != 1 {
		b.Fatalf("%s: %v", plan, err)
	}
	return parsed[0].Time * 1e6
}
