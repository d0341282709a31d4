//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each hint about a store of a ticket names that store: the store of --store, which a command
// without it means, may be healthy, and to recover it would stop its programs.
func TestTicketHintsNameTheStore(t *testing.T) {
	dir := emptyHome(t)
	a := filepath.Join(dir, "a.db")
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  tickets: { kind: ticket, stores: [sqlite:a.db, sqlite:b.db] }
`)
	doctor := func(want ...string) {
		t.Helper()
		out, errs, code := called(t, "doctor")
		for _, w := range want {
			if code != exitFound || !strings.Contains(out, w) {
				t.Errorf("doctor: exit code %d, want %d and %q in\n%s%s", code, exitFound, w, out, errs)
			}
		}
	}
	doctor("bad   series tickets, sqlite:"+a, "firn segments create tickets")
	if files, err := filepath.Glob("*.db"); err != nil || len(files) > 0 {
		t.Errorf("doctor made %v, %v", files, err)
	}
	mustAll(t, "segments create tickets", "next tickets")
	if out, _, _ := called(t, "doctor"); !strings.Contains(out, "ok    series tickets, sqlite:"+a) || strings.Contains(out, "bad ") {
		t.Errorf("doctor:\n%s", out)
	}
	old, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	mustAll(t, "next -n 5000 tickets")
	if err := os.WriteFile(a, old, 0o600); err != nil {
		t.Fatal(err)
	}
	doctor("bad   series tickets, sqlite:"+a, "firn store recover --store sqlite:"+a)
	s := serving(t, dir)
	if err := s.Run(); err == nil || !strings.Contains(s.log.String(), "firn store recover --store sqlite:"+a) || strings.Contains(s.log.String(), "firn store recover (") {
		t.Errorf("serve: %v\n%s", err, s.log)
	}
	mustAll(t, "store recover --yes --outage 1s --numbers 100000 --store sqlite:"+a)
	if out, errs, code := called(t, "next", "tickets"); code != 0 {
		t.Errorf("next: %s%s", out, errs)
	}
}
