package move

import (
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestICU moves a shard between databases that order texts as ICU does: in another way than by bytes,
// and by the rules of the ICU that each server's system has. Texts are keys.
func TestICU(t *testing.T) {
	t.Parallel()
	source, target := testserver.Shared(t, sourceServer), testserver.Shared(t, targetServer)
	if version(t, &site{Conn: dial(t, source.URL())}) < 150000 {
		testserver.FromPostgres(t, 15) // before that no database has it
	}
	a, b := pairOn(t, source, target, 1, "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'sv-SE'")
	a.must(t, `CREATE COLLATION insta0.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE insta0.texts (name text PRIMARY KEY, v integer);
		CREATE TABLE insta0.pairs (name text COLLATE insta0.nocase, kind varchar(8), PRIMARY KEY (name, kind));
		INSERT INTO insta0.texts SELECT (ARRAY['ö', 'Ö', 'z', 'Z', 'o', '-', 'ß', 'å'])[n % 8 + 1] || n % 1000 || '-' || n, n FROM generate_series(1, 30000) AS n;
		INSERT INTO insta0.pairs SELECT (ARRAY['Ab', 'Cd', 'öf'])[n % 3 + 1] || n, 'k' FROM generate_series(1, 20000) AS n`)
	if first, last := a.one(t, "SELECT min(name) FROM insta0.texts"), a.one(t, "SELECT max(name) FROM insta0.texts"); first[0] != '-' || last[:2] != "ö" && last[:2] != "Ö" {
		t.Fatalf("from %s to %s: this is no order of ICU", first, last)
	}
	m := mover(t, a, b)
	mustMove(t, m.Move, 0)
	seen, err := Verify(t.Context(), b.Server, a.Server, "insta0", VerifyOptions{})
	if err != nil || seen.Rows != 50000 || seen.Tables != 2 {
		t.Errorf("%+v, %v", seen, err)
	}
	t.Logf("%d of %d ranges were not of the same rows", seen.Again, seen.Ranges)
	mustEnd(t, m.Finish, 0)
	nothingLeft(t, a, b)
}
