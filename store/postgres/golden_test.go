package postgres

import (
	"testing"

	"github.com/firn-id/firn/internal/golden"
)

// TestGoldenSchema: the table and views are those that version 0.1.0 has made.
func TestGoldenSchema(t *testing.T) {
	golden.Same(t, "testdata/0.1.0/schema.sql", []byte(schema), "Databases of a released version have this table, and older programs use it at the same time: what they read and write has to stay. "+
		"Add the new schema as testdata/NEW-VERSION/schema.sql, with a test that it is made beside the old one. Not released yet: FIRN_GOLDEN=write writes the file anew.")
}
