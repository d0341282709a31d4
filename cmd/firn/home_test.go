//go:build !windows

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/internal/ui"
)

// databases makes empty databases on a server, and returns their URLs.
func databases(t *testing.T, pg *testserver.Server, names ...string) []string {
	t.Helper()
	var urls []string
	for _, name := range names {
		urls = append(urls, testdb.New(t, pg, name))
	}
	return urls
}

// firnOn runs firn with a store, and returns all that it printed.
func firnOn(t *testing.T, url string, want int, args ...string) string {
	t.Helper()
	p := command(t, "", args...)
	p.Env = append(p.Env, "FIRN_STORE="+url)
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != want {
		t.Errorf("%v: exit code %d, want %d: %s%s", args, code, want, &out, p.errs.String())
	}
	return out.String() + p.errs.String()
}

// A restored dump with counters and without a pool is refused everywhere, and each refusal
// says all that it takes. Who follows it repeats no number.
func TestCountersInACopy(t *testing.T) {
	t.Parallel()
	urls := databases(t, testserver.Postgres(t), "home", "dumped", "moved_to")
	home := urls[0]
	document := []string{"--pattern", "INV-{6}"}
	firnOn(t, home, 0, "series", "create", "orders", "--kind", "sequence")
	firnOn(t, home, 0, append([]string{"series", "create", "invoice"}, document...)...)
	for _, there := range urls[1:] {
		copyRecords(t, home, there) // before anything was drawn: the store is noted when a counter begins
	}
	hint := "firn: hint: only if the other store no longer exists: stop all processes that use this one, then: firn store recover --store "
	numbers := " (it asks first; for sequences and documents it wants --numbers, and says how to find it"
	there := urls[1]
	for _, args := range [][]string{
		{"next", "orders"},
		{"next", "invoice"},
		append([]string{"next", "-n", "3", "invoice"}, document...),
		{"serve", "--http", "off", "--resp", "127.0.0.1:0"},
		{"pool", "create", "--new"},
		{"pool", "ensure"},
		{"series", "create", "photos", "--kind", "sequence"},
		{"series", "set", "orders", "--cache", "7"},
		{"series", "raise", "orders", "700"},
		append([]string{"series", "create", "bill"}, document...),
		{"series", "set", "invoice", "--pattern", "INV-{8}"},
		{"series", "raise", "invoice", "INV-000700"},
	} {
		if args[0] == "serve" {
			args = append(args, "--config", configOf(t, ordersLine, invoiceLine))
		}
		text := firnOn(t, there, ui.ExitFailed, args...)
		text = regexp.MustCompile(` --config [^ ,\n]*`).ReplaceAllString(text, "")
		if !strings.Contains(text, " belongs to another store: this one is PostgreSQL system ") || !strings.Contains(text, hint+phrase.ShellWord(there)+numbers) ||
			!strings.Contains(text, "and the old one is gone: firn store recover --store "+phrase.ShellWord(there)+" --moved") {
			t.Errorf("%v: %s", args, text)
		}
	}
	for _, look := range [][]string{{"series", "ls"}, {"series", "show", "invoice"}, {"pool", "ls"}} {
		if text := firnOn(t, there, 0, look...); !strings.Contains(text, `firn: warning: series "orders" belongs to another store`) {
			t.Errorf("%v: %s", look, text)
		}
		if text := firnOn(t, home, 0, look...); strings.Contains(text, "warning") {
			t.Errorf("the original: %v: %s", look, text)
		}
	}
	found := firnOn(t, there, ui.ExitFound, "doctor")
	for _, what := range []string{`series "orders"`, `document "invoice"`} {
		if !regexp.MustCompile(`(?m)^bad +counters, store: ` + what + ` belongs to another store.*use that one.*stop all processes that use this one, then: firn store recover`).MatchString(found) {
			t.Error(found)
		}
	}
	if text := firnOn(t, home, 0, "doctor"); strings.Contains(text, "another store") {
		t.Error(text)
	}

	last := firnOn(t, home, 0, "next", "orders", "-n", "10")
	text := firnOn(t, home, 0, "next", "invoice", "-n", "3")
	if !strings.HasSuffix(last, "\n10\n") || !strings.HasSuffix(text, "INV-000003\n") {
		t.Error(last, text)
	}
	firnOn(t, there, ui.ExitUsage, "store", "recover", "--yes")
	done := firnOn(t, there, 0, "store", "recover", "--yes", "--numbers", "100")
	if strings.Contains(done, "no ids for") || !strings.Contains(done, "series: orders, invoice. Each leaves out 100 numbers, and continues at once") ||
		!strings.Contains(done, "is safe again: it has no pool; the ids of one that is created now start at ") {
		t.Error(done)
	}
	if first := firnOn(t, there, 0, "next", "orders"); first != "101\n" {
		t.Error(first)
	}
	if first := firnOn(t, there, 0, "next", "invoice"); first != "INV-000101\n" {
		t.Error(first)
	}
	moved := firnOn(t, urls[2], 0, "store", "recover", "--moved", "--yes")
	if !strings.Contains(moved, "sequence orders: belongs to this store now\ndocument invoice: belongs to this store now\n") {
		t.Error(moved)
	}
	if first := firnOn(t, urls[2], 0, "next", "orders"); first != "1\n" { // nothing was drawn before the copy
		t.Error(first)
	}
	if text := firnOn(t, urls[2], 0, "store", "recover", "--moved", "--yes"); !strings.Contains(text, "no record had to be changed") {
		t.Error(text)
	}
}

// configOf is a firn.yaml with series, whose store is that of FIRN_STORE.
func configOf(t *testing.T, series ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "series:\n  "+strings.Join(series, "  "))
	return dir + "/firn.yaml"
}
