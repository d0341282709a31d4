package sqlite

import (
	"context"
	"os"
	"slices"
	"testing"
)

func mustOpen(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// remove takes the database away, and leaves what "rm ids.db" leaves.
func remove(tb testing.TB, path string) {
	tb.Helper()
	if err := os.Remove(path); err != nil {
		tb.Fatal(err)
	}
}

// files are the names in dir.
func files(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func expectFiles(tb testing.TB, dir string, want ...string) {
	tb.Helper()
	if got := files(tb, dir); !slices.Equal(got, want) {
		tb.Errorf("the directory has %q, not %q", got, want)
	}
}

// checkIntegrity asks SQLite.
func checkIntegrity(tb testing.TB, path string) {
	tb.Helper()
	db := rawDB(tb, path)
	defer db.Close()
	var result string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		tb.Errorf("integrity check: %s, %v", result, err)
	}
}
