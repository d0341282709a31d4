package move

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestReceiverCost measures what the triggers of firn.check_receiver cost the server that applies
// a stream: the processor time of its apply worker for INSERTs of many rows, with the triggers and
// without them, in turn. It is for make full: it measures, and that rows arrive with the triggers is what all moves
// to and fro have.
func TestReceiverCost(t *testing.T) {
	testserver.OnlyLong(t)
	const rounds = 7
	for _, tt := range []struct {
		name      string
		rows      int
		statement string
	}{
		{"one INSERT", 100_000, "INSERT INTO insta0.measured SELECT n, 'a text of some length, as rows have' FROM generate_series(%d, %d) AS n"},
		{"a transaction a row", 20_000, "DO $$ BEGIN FOR n IN %d..%d LOOP INSERT INTO insta0.measured VALUES (n, 'a text of some length, as rows have'); COMMIT; END LOOP; END $$"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			a, b := pair(t, 1)
			a.must(t, "CREATE TABLE insta0.measured (id bigint PRIMARY KEY, text text NOT NULL)")
			mustMove(t, mover(t, a, b).Move, 0)
			b.must(t, "SET synchronous_commit = off")
			rows := tt.rows
			var took [2][]float64
			for round := range 2 * (rounds + 1) {
				word := []string{"ENABLE REPLICA", "DISABLE"}[round%2]
				a.must(t, fmt.Sprintf("ALTER TABLE insta0.measured %[1]s TRIGGER firn_receiver, %[1]s TRIGGER firn_receiver_all", word))
				b.must(t, fmt.Sprintf(tt.statement, 0, 0)) // the worker reads the catalog again
				caughtUp(t, a, 1)
				before := workerTime(t, a)
				b.must(t, fmt.Sprintf(tt.statement, 1, rows))
				caughtUp(t, a, rows+1)
				if round >= 2 {
					took[round%2] = append(took[round%2], workerTime(t, a)-before)
				}
				b.must(t, "TRUNCATE insta0.measured")
				caughtUp(t, a, 0)
			}
			for i, what := range []string{"with the triggers", "without them"} {
				slices.Sort(took[i])
				one := func(j int) float64 { return took[i][j] / float64(rows) * 1e6 }
				t.Logf("%s, %s: %.2f us a row (%.2f to %.2f), %d rounds of %d rows", tt.name, what, one(rounds/2), one(0), one(rounds-1), rounds, rows)
			}
		})
	}
}

func caughtUp(t *testing.T, a *site, rows int) {
	t.Helper()
	a.eventually(t, "SELECT count(*)::text FROM insta0.measured", strconv.Itoa(rows))
}

// workerTime is how many seconds of processor time the apply worker has used so far.
func workerTime(t *testing.T, a *site) float64 {
	t.Helper()
	pid := a.one(t, "SELECT pid::text FROM pg_stat_subscription AS s JOIN pg_database AS d ON d.datname = current_database() JOIN pg_subscription AS u ON u.oid = s.subid AND u.subdbid = d.oid WHERE s.relid IS NULL AND s.pid IS NOT NULL")
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndex(string(data), ")")+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return float64(ticks) / 100
}
