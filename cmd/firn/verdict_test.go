package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// TestVerdictUnread: a check whose output nobody reads, as behind "| head -1", ends with its own exit code.
func TestVerdictUnread(t *testing.T) {
	dir := emptyHome(t)
	ids, settings := filepath.Join(dir, "ids.txt"), filepath.Join(dir, "wrong.yaml")
	for path, text := range map[string]string{ids: "252398853968366755\n252398853968366755\n", settings: "pool: {}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"verify", ids}, {"verify", ids, "--json"}, {"config", "check", settings}, {"doctor", "--config", settings},
	} {
		var read, unread, errs bytes.Buffer
		if code := run(args, strings.NewReader(""), &read, &errs); code != ui.ExitFound {
			t.Fatalf("%q: exit code %d: %s", args, code, errs.String())
		}
		if code := run(args, strings.NewReader(""), broken{}, &unread); code != ui.ExitFound || unread.String() != errs.String() {
			t.Errorf("%q, and nobody reads it: exit code %d: %s", args, code, unread.String())
		}
	}
}
