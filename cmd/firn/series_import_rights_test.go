//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestImportUnreadableSequence: pg_sequences shows NULL for a sequence that the role may not read,
// as for one that was never used. The import says which it left out, and refuses one that is named.
func TestImportUnreadableSequence(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	onDatabase(t, server.URL(), `CREATE SEQUENCE mine; CREATE SEQUENCE "Theirs"; CREATE ROLE app LOGIN; GRANT SELECT ON SEQUENCE mine TO app;
		SELECT setval('mine', 7), setval('"Theirs"', 9)`)
	db := server.URL() + "&user=app"
	run := func(query string) (string, int) {
		out, errs, code := called(t, "series", "import", "--store", "sqlite:ids.db", "--db", db, "--query", query)
		return out + errs, code
	}
	const grant = `GRANT SELECT ON SEQUENCE public."Theirs" TO app`
	said, code := run(`SELECT lower(sequencename), last_value, 1 FROM pg_sequences WHERE last_value > 0`)
	for _, want := range []string{`firn: warning: the role app may not read public."Theirs"`, grant, "series: 1 begun"} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("exit code %d, want %q: %s", code, want, said)
		}
	}
	const named = `SELECT lower(sequencename), last_value, 1 FROM pg_sequences WHERE sequencename IN ('mine', 'Theirs') AND last_value > 0`
	said, code = run(named)
	if code != 1 || !strings.Contains(said, grant) || !strings.Contains(said, `--query names public."Theirs"`) {
		t.Errorf("exit code %d: %s", code, said)
	}
	onDatabase(t, server.URL(), grant)
	if said, code = run(named); code != 0 || strings.Contains(said, "warning") || !strings.Contains(said, "series: 1 begun, 0 raised, 1 kept") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
