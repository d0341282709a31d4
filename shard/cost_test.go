package shard_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
)

// BenchmarkGenerator compares what an id costs in the database with nextval and
// with the published function. All forms take turns, 15 rounds of 100,000 ids in one
// statement; a figure is the median, less what the statement costs without an id.
//
//	go test ./shard -run '^$' -bench Generator -benchtime 1x
func BenchmarkGenerator(b *testing.B) {
	db := newDatabase(b)
	mustExec(b, db.Conn, published)
	mustExec(b, db.Conn, "ALTER FUNCTION insta5.next_id() RENAME TO published_id; CREATE SEQUENCE insta5.plain; SET jit = off")
	mustExec(b, db.Conn, script(b, firn.MustLayout("instagram"), insta(5)))
	const each = "FROM generate_series(1, 100000) g"
	forms := []struct{ name, sql string }{
		{"nothing", "SELECT count(g) " + each},
		{"nextval", "SELECT count(nextval('insta5.plain')) " + each},
		{"published", "SELECT count(insta5.published_id()) " + each},
		{"next_id", "SELECT count(insta5.next_id()) " + each},
		{"next_ids", "SELECT count(i) FROM generate_series(1, 100) g, LATERAL insta5.next_ids(1000 + 0 * g) i"},
	}
	for b.Loop() {
		times := make([][]float64, len(forms))
		for range 15 {
			for i, f := range forms {
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
