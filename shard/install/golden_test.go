package install

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/golden"
)

// goldenSQL are the files with the SQL of each version: what a server has that was set up with it.
var goldenSQL = map[int]string{1: "testdata/0.1.0/shards.sql"}

// raiseVersion is what an author does about other SQL.
const raiseVersion = "Was the version of this file released? Then raise install.SQLVersion by one, add the new SQL as testdata/NEW-VERSION/shards.sql to goldenSQL, and leave this file as it is: " +
	"an older firn shard init refuses servers with a higher version, and would write its own functions over these with the same one. Not released yet: FIRN_GOLDEN=write writes the file anew."

// TestGoldenSQL: what firn shard init writes has not changed since its version was given that number.
func TestGoldenSQL(t *testing.T) {
	file := goldenSQL[SQLVersion]
	if file == "" {
		t.Fatalf("goldenSQL has no file for SQLVersion %d", SQLVersion)
	}
	var now bytes.Buffer
	for _, err := range []error{WriteGenerator(&now, firn.Sharded()), WriteMoves(&now, firn.Sharded()), WriteGrants(&now, "firn_app")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	golden.Same(t, file, now.Bytes(), raiseVersion)
	var codes strings.Builder
	for _, layout := range []string{"sharded", "instagram", "time:40@1ms,shard:10,seq:13;epoch=1971-01-01T00:00:00Z", "time:32@1s,seq:16,shard:15;epoch=2025-01-01T00:00:00.5Z"} {
		code, err := Code(firn.MustLayout(layout))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&codes, layout, code)
	}
	golden.Same(t, strings.Replace(file, "shards.sql", "codes.txt", 1), []byte(codes.String()), raiseVersion)
}

// TestGoldenVersions: each file says its own version, in the way that every firn reads it.
func TestGoldenVersions(t *testing.T) {
	for version, file := range goldenSQL {
		text := golden.Read(t, file)
		want := fmt.Sprintf("CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS\n$$ SELECT %d $$;\n", version)
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%s has not once\n%s", file, want)
		}
	}
}
