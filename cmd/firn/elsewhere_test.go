//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

// TestMistypedSearchPath: a schema that is not the store's looks like an empty store. The
// error names the schema before anything offers to create.
func TestMistypedSearchPath(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	onDatabase(t, server.URL(), "CREATE SCHEMA ids; CREATE SCHEMA empty; CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA empty TO app")
	at := func(path string) string { return server.URL() + "&search_path=" + path }
	if _, errs, code := called(t, "pool", "create", "--new", "--store", at("ids")); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		path string
		args []string
		want []string
		code int
	}{
		{"nosuch", []string{"next"}, []string{`there is no schema "nosuch" in this database`, "in schema ids"}, ui.ExitFailed},
		{"nosuch", []string{"doctor"}, []string{`there is no schema "nosuch" in this database`}, ui.ExitFound},
		{"nosuch", []string{"store", "setup"}, []string{`there is no schema "nosuch" in this database`}, ui.ExitFailed},
		{"nosuch,empty", []string{"next"}, []string{"hint: the search_path here is nosuch,empty, and there is no schema nosuch. Schema ids has a table firn_records"}, ui.ExitFailed},
		{"empty", []string{"next"}, []string{"hint: the search_path here is empty. Schema ids has a table firn_records", "search_path=ids"}, ui.ExitFailed},
		{"empty&user=app", []string{"next"}, []string{"hint: the search_path here is empty. Schema ids has a table firn_records"}, ui.ExitFailed},
		{"empty", []string{"next", "orders"}, []string{"hint: the search_path here is empty. Schema ids has a table firn_records"}, ui.ExitFailed},
		{"empty", []string{"doctor"}, []string{"the search_path here is empty. Schema ids has a table firn_records"}, 0},
	} {
		out, errs, code := called(t, append(c.args, "--store", at(c.path))...)
		said := out + errs
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s at %s does not say %q: %s", c.args, c.path, want, said)
			}
		}
		if create := strings.Index(said, "firn pool create"); create >= 0 && create < strings.Index(said, "schema") {
			t.Errorf("%s at %s offers to create before it names the schema: %s", c.args, c.path, said)
		}
		if code != c.code {
			t.Errorf("%s at %s: exit code %d, not %d: %s", c.args, c.path, code, c.code, said)
		}
	}
	// A second store of the database is another schema, and is created as before.
	if _, errs, code := called(t, "pool", "create", "--new", "--store", at("empty")); code != 0 {
		t.Error(errs)
	}
	if out, errs, code := called(t, "next", "--store", at("empty")); code != 0 {
		t.Error(out, errs)
	}
}
