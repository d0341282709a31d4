package testserver

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The environment variables, besides those of the kinds.
const (
	envRequire = "FIRN_REQUIRE_SERVERS" // "1": a missing server is a failure
	envInstall = "FIRN_INSTALL_SERVERS" // "0": install nothing
	envSkips   = "FIRN_TEST_SKIPS"      // a file to note skipped tests in; Count reads it
	envLong    = "FIRN_LONG"            // not empty: the long tests too
)

// These stand in the notes for the servers that a skipped test lacks.
const (
	long     = "long"
	versions = "a version of PostgreSQL"
	mount    = "the right to mount a file system"
)

// Long reports whether long tests and the long forms of others run: FIRN_LONG is set, as make
// full does.
func Long() bool { return os.Getenv(envLong) != "" }

// OnlyLong ends a test that only make full runs, so that it is seen: make test counts it in its
// last lines. Such a test takes long, and another test holds its rules too, in fewer places.
func OnlyLong(tb testing.TB) {
	tb.Helper()
	if Long() {
		return
	}
	if err := note(os.Getenv(envSkips), long, tb.Name()); err != nil {
		tb.Fatal(err)
	}
	tb.Skipf("make full runs it: %s is not set", envLong)
}

// FromPostgres ends a test that needs a version of PostgreSQL which the tests do not talk to, so that
// it is seen: make postgres runs it.
func FromPostgres(tb testing.TB, major int) {
	tb.Helper()
	from, to := asked()
	for _, version := range []string{from, to} {
		if n, err := strconv.Atoi(version); err != nil || n < major {
			leave(tb, fmt.Sprintf("no PostgreSQL %d or newer", major))
		}
	}
}

// TwoPostgreses ends a test between two versions of PostgreSQL, where the tests talk to one.
func TwoPostgreses(tb testing.TB) {
	tb.Helper()
	if from, to := asked(); from == to {
		leave(tb, "no two versions")
	}
}

func leave(tb testing.TB, why string) {
	tb.Helper()
	if err := note(os.Getenv(envSkips), versions, tb.Name()); err != nil {
		tb.Fatal(err)
	}
	tb.Skipf("make postgres runs it: %s names %s", envPostgres, why)
}

// require makes sure that the programs of k are there, or ends the test.
func require(tb testing.TB, k *kind) {
	tb.Helper()
	// Asked for in any case, so that go test takes no result from its cache when
	// somebody counts.
	os.Getenv(envSkips)
	if !supported {
		skip(tb, k, errUnsupported.Error())
	}
	if len(k.missing()) == 0 {
		return
	}
	why := "it is not installed"
	if err := install([]*kind{k}); err != nil {
		why = err.Error()
	}
	if missing := k.missing(); len(missing) > 0 {
		skip(tb, k, fmt.Sprintf("%s (missing: %s)", why, strings.Join(missing, ", ")))
	}
}

// skip ends a test that lacks a server, so that it is seen.
func skip(tb testing.TB, k *kind, why string) {
	tb.Helper()
	if os.Getenv(envRequire) == "1" {
		tb.Fatalf("testserver: %s: %s; %s=1 makes that a failure", k.name, why, envRequire)
	}
	if err := note(os.Getenv(envSkips), k.name, tb.Name()); err != nil {
		tb.Fatal(err)
	}
	tb.Skipf("testserver: %s: %s", k.name, why)
}

// note adds a line to the file that Count reads.
func note(path, server, test string) error {
	if path == "" {
		return nil
	}
	dir, err := os.Getwd() // go test runs each binary in its package's
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\t%s\t%s\n", server, dir, test)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Count reads the tests that were noted as skipped, and returns how many there
// were for want of each server, one line each, and how many only make full runs;
// nothing if there were none.
func Count(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	tests := map[string]map[string]bool{}
	for line := range strings.Lines(string(b)) {
		server, test, ok := strings.Cut(line, "\t")
		if !ok {
			return "", fmt.Errorf("testserver: %s: %q is no note", path, line)
		}
		if tests[server] == nil {
			tests[server] = map[string]bool{}
		}
		tests[server][test] = true // once, however often a loop ran it
	}
	var out strings.Builder
	wanted := []string{mount}
	for _, k := range kinds {
		wanted = append(wanted, k.name)
	}
	for _, name := range wanted {
		if n := len(tests[name]); n == 1 {
			fmt.Fprintf(&out, "skipped: 1 test for want of %s\n", name)
		} else if n > 1 {
			fmt.Fprintf(&out, "skipped: %d tests for want of %s\n", n, name)
		}
	}
	if n := len(tests[versions]); n > 0 {
		fmt.Fprintf(&out, "left to make postgres: %d tests\n", n)
	}
	if n := len(tests[long]); n == 1 {
		out.WriteString("left to make full: 1 test\n")
	} else if n > 1 {
		fmt.Fprintf(&out, "left to make full: %d tests\n", n)
	}
	return out.String(), nil
}
