//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
)

// Each hint about a store of a ticket names that store: the store of --store, which a command
// without it means, may be healthy, and to recover it would stop its programs.
func TestTicketHintsNameTheStore(t *testing.T) {
	dir := emptyHome(t)
	a := filepath.Join(dir, "a.db")
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  tickets: { kind: sequence, stores: [sqlite:a.db, sqlite:b.db] }
`)
	doctor := func(want ...string) {
		t.Helper()
		out, errs, code := called(t, "doctor")
		for _, w := range want {
			if code != ui.ExitFound || !strings.Contains(out, w) {
				t.Errorf("doctor: exit code %d, want %d and %q in\n%s%s", code, ui.ExitFound, w, out, errs)
			}
		}
	}
	doctor("bad   series tickets, sqlite:"+a, "firn series create tickets --kind sequence")
	if files, err := filepath.Glob("*.db"); err != nil || len(files) > 0 {
		t.Errorf("doctor made %v, %v", files, err)
	}
	mustAll(t, "series create tickets --kind sequence", "next tickets")
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

// One store of a ticket has lost it. No hint leads in a circle: in that store alone it cannot be
// created again, and a ticket of another name goes on above every number.
func TestTicketThatOneStoreLost(t *testing.T) {
	dir := emptyHome(t)
	config := func(series string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { "+series+", stores: [sqlite:a.db, sqlite:b.db] } }\n")
	}
	config("bill: { kind: sequence")
	mustAll(t, "series create bill --kind sequence", "next -n 30 bill")
	for _, name := range []string{"b.db", ".b.db.id"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	mustAll(t, "store recover --lost --yes --store sqlite:"+filepath.Join(dir, "b.db"))
	const want = "if another store of bill still has it, it cannot be created again in this one: "
	for _, args := range []string{"doctor", "next bill", "series create bill --kind sequence --first 1000", "serve --resp 127.0.0.1:0 --http off"} {
		out, errs, code := called(t, strings.Fields(args)...)
		text := out + errs
		if code == 0 || !strings.Contains(text, want) || !strings.Contains(text, "firn series create NEWNAME --kind sequence --new") {
			t.Errorf("%s: exit code %d, %s", args, code, text)
		}
		if at := strings.Index(text, "series create bill --kind sequence --first N"); at >= 0 && at < strings.Index(text, want) {
			t.Errorf("%s: the hint that is refused comes first: %s", args, text)
		}
	}
	config("bill2: { kind: sequence, first: 1000")
	mustAll(t, "series create bill2 --kind sequence --new")
	for range 3 {
		if out, errs, code := called(t, "next", "bill2"); code != 0 || len(strings.TrimSpace(out)) != 4 {
			t.Errorf("next bill2: exit code %d, %s%s", code, out, errs)
		}
	}
}

// ticketLines are a firn.yaml with a ticket over two files, beside a store of its own.
const ticketLines = "store: sqlite:ids.db\nseries:\n  tick: { kind: sequence, stores: [sqlite:a.db, sqlite:b.db] }\n"

// A file of a ticket that was moved away with its hidden file is not made anew, and no hint about it
// leads to another main store: FIRN_STORE replaces the store of every other series.
func TestTicketFileMoved(t *testing.T) {
	dir := emptyHome(t)
	write(t, dir, "firn.yaml", ticketLines)
	mustAll(t, "series create tick --kind sequence", "next tick")
	for _, name := range []string{"b.db", ".b.db.id"} {
		if err := os.MkdirAll("moved", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name, filepath.Join("moved", name)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "b.db")
	for _, command := range []string{"next tick", "series create tick --kind sequence", "series create", "series raise tick 5000"} {
		errs := refusedWith(t, strings.Fields(command), "there is no store sqlite:"+path, "write its new path wherever sqlite:"+path+" is named", "put it back")
		if remedy.IsFile(path) || strings.Contains(errs, "FIRN_STORE=") {
			t.Errorf("%s: file %t: %s", command, remedy.IsFile(path), errs)
		}
	}
	s := serving(t, dir)
	if err := s.Run(); err == nil || remedy.IsFile(path) || !strings.Contains(s.log.String(), "there is no store sqlite:"+path) {
		t.Errorf("serve: %v, file %t\n%s", err, remedy.IsFile(path), s.log)
	}
	write(t, dir, "firn.yaml", strings.ReplaceAll(ticketLines, "b.db", "moved/b.db")) // as the hint says
	mustAll(t, "next tick")
}

// The hint of a file that a running server has lost names no variable that replaces another store.
func TestMovedFileHint(t *testing.T) {
	for _, text := range remedy.NoFile("sqlite:/srv/t2.db", "") {
		if strings.Contains(text, "FIRN_STORE=") {
			t.Error(text)
		}
	}
}
