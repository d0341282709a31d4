//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/phrase"
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
		{"nosuch,empty", []string{"next"}, []string{"the search_path of role t, which is nosuch,empty; there is no schema nosuch, and there is one in schema ids"}, ui.ExitFailed},
		{"empty", []string{"next"}, []string{"the search_path of role t, which is empty; there is one in schema ids", "search_path=ids"}, ui.ExitFailed},
		{"empty&user=app", []string{"next"}, []string{"the search_path of role app, which is empty; there is one in schema ids"}, ui.ExitFailed},
		{"empty", []string{"next", "orders"}, []string{"which is empty; there is one in schema ids"}, ui.ExitFailed},
		{"empty", []string{"doctor"}, []string{"which is empty; there is one in schema ids"}, ui.ExitFound},
		{"empty", []string{"pool", "create", "--new"}, []string{"which is empty; there is one in schema ids", "firn store setup --second"}, ui.ExitFailed},
		{"empty", []string{"pool", "ensure"}, []string{"which is empty; there is one in schema ids"}, ui.ExitFailed},
		{"empty", []string{"series", "create", "orders", "--kind", "sequence", "--first", "1"}, []string{"which is empty; there is one in schema ids"}, ui.ExitFailed},
		{"empty", []string{"store", "setup"}, []string{"which is empty; there is one in schema ids"}, ui.ExitFailed},
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
	// A second store of the database is another schema, and is created on purpose.
	if _, errs, code := called(t, "store", "setup", "--second", "--store", at("empty")); code != 0 {
		t.Error(errs)
	}
	if _, errs, code := called(t, "pool", "create", "--new", "--store", at("empty")); code != 0 {
		t.Error(errs)
	}
	if out, errs, code := called(t, "next", "--store", at("empty")); code != 0 {
		t.Error(out, errs)
	}
}

// TestAnotherDatabase: a database in which firn has nothing may be the wrong one. That is asked
// before anything offers to create, and said where a pool was created in place of a lost one.
func TestAnotherDatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	url := testserver.Postgres(t).URL()
	const ask = "firn: hint: If your other programs use another database, use that one: FIRN_STORE=URL. "
	const askCounter = "firn: hint: if your other programs use another database, use that one: FIRN_STORE=URL\n"
	for _, args := range [][]string{{"next"}, {"next", "orders"}, {"pool", "show"}, {"run", "--", "true"}} {
		at := slices.Index(args, "--")
		if at < 0 {
			at = len(args)
		}
		if errs := refusedWith(t, slices.Insert(args, at, "--store", url), ask); !strings.HasPrefix(errs[strings.Index(errs, "firn: hint: "):], ask) {
			t.Errorf("%q: %s", args, errs)
		}
	}
	if errs := refusedWith(t, []string{"next", "orders", "--kind", "sequence", "--store", url}, askCounter); !strings.HasPrefix(errs[strings.Index(errs, "firn: hint: "):], askCounter) {
		t.Error(errs)
	}
	if out, _, _ := called(t, "pool", "ensure", "--help"); !strings.Contains(out, "another database") {
		t.Error(out)
	}
	_, errs, code := called(t, "pool", "ensure", "--store", url)
	for _, want := range []string{"firn: warning: ", "counters of an earlier store are not in this one", "firn series create NAME --kind sequence --first N --store " + phrase.ShellWord(url), "firn series create NAME --pattern PATTERN --after TEXT --store " + phrase.ShellWord(url)} {
		if code != 0 || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, want %q: %s", code, want, errs)
		}
	}
	if _, errs, _ := called(t, "pool", "ensure", "--store", url); strings.Contains(errs, "counters") {
		t.Errorf("the pool was there: %s", errs)
	}
	mustAll(t, "store recover --yes --outage 1s --store "+url) // ids start at once, and the store may have lost a counter
	onDatabase(t, url, `DELETE FROM firn_records`)
	mustAll(t, "pool create --new --store "+url)
	const note = "orders is no counter of this store, and so this is an id of pool default"
	out, errs, code := called(t, "next", "orders", "-n", "2", "--store", url)
	if code != 0 || strings.Count(errs, note) != 1 || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "firn series create orders --kind sequence --first N --store "+phrase.ShellWord(url)) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for _, quiet := range [][]string{{"next", "--store", url}, {"next", "orders", "--kind", "flake", "--store", url}} {
		if _, errs, code := called(t, quiet...); code != 0 || errs != "" {
			t.Errorf("%q: exit code %d: %s", quiet, code, errs)
		}
	}
}

// TestACopyForStaging: a database that was copied on purpose, and whose ids never meet those of
// the original, is recovered. Message, question and help name that case.
func TestACopyForStaging(t *testing.T) {
	t.Chdir(t.TempDir())
	url := testserver.Postgres(t).URL()
	onDatabase(t, url, "CREATE DATABASE app")
	app := strings.Replace(url, "/postgres?", "/app?", 1)
	mustAll(t, "pool create --new --store "+app)
	onDatabase(t, url, "CREATE DATABASE staging TEMPLATE app")
	staging := strings.Replace(url, "/postgres?", "/staging?", 1)
	const want = "its ids never meet those of the other store"
	refusedWith(t, []string{"next", "--store", staging}, want)
	refusedWith(t, []string{"store", "recover", "--store", staging}, want)
	if out, _, _ := called(t, "store", "recover", "--help"); !strings.Contains(out, "never meet") {
		t.Error(out)
	}
	mustAll(t, "store recover --yes --store "+staging)
	refusedWith(t, []string{"next", "--store", staging}, "start at")
	mustAll(t, "next --store "+app)
}
