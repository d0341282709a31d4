package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/golden"
)

// TestGolden reads a sidecar as version 0.1.0 has written it, with its mark, and writes it with the same bytes. It holds
// the schema of the database too.
func TestGolden(t *testing.T) {
	const file = "testdata/0.1.0/sidecar"
	at, err := locate(filepath.Join(t.TempDir(), "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	want := sidecar{V: 1, Store: "00112233445566778899aabbccddeeff", identity: identity{Inode: 18446744073709551615, Born: 1764331200123456789}, Lost: "its rows", writes: 4711}
	if err := at.replaceSidecar(want); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(at.sidecar())
	if err != nil {
		t.Fatal(err)
	}
	golden.Same(t, file, now, "")
	if err := os.WriteFile(at.sidecar(), golden.Read(t, file), 0o600); err != nil {
		t.Fatal(err)
	}
	want.Note = sidecarNote
	if got, err := at.readSidecar(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	golden.Filled(t, file, want)
	golden.Same(t, "testdata/0.1.0/schema.sql", fmt.Appendf(nil, "PRAGMA application_id = %d;\nPRAGMA user_version = %d;%s\n", applicationID, schemaVersion, schema),
		"Files of a released version have this schema: raise schemaVersion, have Open change such a file or read both, and add testdata/NEW-VERSION/schema.sql. Not released yet: FIRN_GOLDEN=write writes the file anew.")
}
