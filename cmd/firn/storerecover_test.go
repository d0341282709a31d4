package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// called runs firn in this process, and returns what it said.
func called(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func emptyHome(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, dir)
	}
	return dir
}

// A backup is put back, and no id repeats: not those that it knows of, and not
// those that it has forgotten.
func TestRestored(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "the ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	t.Setenv("FIRN_OUTAGE", "1s")

	seen := map[string]bool{}
	last := ""
	issue := func(args ...string) {
		t.Helper()
		out, errs, code := called(t, append([]string{"next", "-n", "5000"}, args...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		for line := range strings.Lines(out) {
			if seen[line] {
				t.Errorf("id %s was issued before", strings.TrimSpace(line))
			}
			if line <= last {
				t.Errorf("id %s is not above %s", strings.TrimSpace(line), strings.TrimSpace(last))
			}
			seen[line], last = true, line
		}
	}
	refused := func(want ...string) {
		t.Helper()
		out, errs, code := called(t, "next", "--wait", "0")
		for _, w := range want {
			if code != ui.ExitFailed || out != "" || !strings.Contains(errs, w) {
				t.Errorf("exit code %d, printed %q and\n%s, not %s", code, out, errs, w)
			}
		}
	}

	if _, errs, code := called(t, "pool", "create", "--new", "--outage", "1s"); code != 0 {
		t.Fatal(errs)
	}
	issue()
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	issue()
	issue() // forgotten, with what came before
	if err := os.WriteFile(path+".backup", backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".backup", path); err != nil {
		t.Fatal(err)
	}
	refused("has forgotten what it acknowledged", " (it asks first; for sequences and documents it wants --numbers, and says how to find it; add --outage if any process had an outage budget of more than 5 min)", "firn: hint: only if no process will use the original or another copy again, as after you put a backup back: stop all processes that use this one, then: firn store recover --store 'sqlite:"+path+"'")

	if _, errs, code := called(t, "store", "recover"); code != ui.ExitUsage || !strings.Contains(errs, "firn store recover --store 'sqlite:"+path+"' --yes") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	refused("has forgotten") // nothing was done

	before := time.Now()
	for again := range 2 {
		out, errs, code := called(t, "store", "recover", "--yes", "--outage", "1s")
		if code != 0 || !strings.Contains(out, " is safe again: ids start at ") {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		if want := fmt.Sprintf("pool default: %d record", 1-again); again == 0 && !strings.Contains(out, want) {
			t.Errorf("printed %s", out)
		}
		if !strings.Contains(errs, "no ids for about 11s, ") {
			t.Errorf("explained %s", errs)
		}
	}
	refused(`the ids of pool "default" start at `)
	issue("--wait", "30s")
	if waited := time.Since(before); waited < 10*time.Second {
		t.Errorf("issued after %s", waited)
	}
}

// Where the file is gone an empty one is made, which starts above all. Somebody has to say
// that it is gone: it may have been moved.
func TestRestoredWithoutFile(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	if _, errs, code := called(t, "next"); code != 0 {
		t.Fatal(errs)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := called(t, "next"); code != ui.ExitFailed || !strings.Contains(errs, "firn store recover --store sqlite:"+path) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, _ := called(t, "next"); !strings.Contains(errs, "hint: if the file was moved, or its volume is not mounted: put it back, and restart the programs that stopped (a running server: send SIGHUP). To keep it elsewhere, write its new path wherever sqlite:"+path+" is named") {
		t.Errorf("%s", errs)
	}
	if _, errs, code := called(t, "store", "recover", "--yes"); code != ui.ExitFailed || remedy.IsFile(path) ||
		!strings.Contains(errs, "hint: if the file was moved, or its volume is not mounted: put it back, and restart the programs that stopped (a running server: send SIGHUP). To keep it elsewhere, write its new path wherever sqlite:"+path+" is named") ||
		!strings.Contains(errs, "and it was not moved: firn store recover --store sqlite:"+path+" --lost (add --outage if any") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := called(t, "store", "recover", "--lost"); code != ui.ExitUsage || remedy.IsFile(path) ||
		!strings.Contains(errs, "are the file and all its copies lost: not moved, and not on a volume that is not mounted?") || !strings.Contains(errs, " --lost --yes\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, errs, code := called(t, "store", "recover", "--lost", "--yes", "--json")
	if code != 0 || !strings.Contains(errs, "there is no file: an empty one is made") ||
		!strings.HasPrefix(out, `{"store":"sqlite:`+path+`","starts_at":"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := called(t, "next", "--wait", "0"); code != ui.ExitFailed || !strings.Contains(errs, `the ids of pool "default" start at `) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := called(t, "store", "recover", "--lost", "--yes"); code != ui.ExitUsage || !strings.Contains(errs, "--lost: the file "+path+" is there") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := called(t, "store", "recover", "--lost", "--yes", "--store", "postgres://127.0.0.1:1/app"); code != ui.ExitUsage || !strings.Contains(errs, "--lost is for a SQLite file") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// The store that was moved stays the only one, whatever is typed at its old place.
func TestRecoverMovedFile(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "")
	os.Unsetenv("FIRN_STORE")
	if _, errs, code := called(t, "next"); code != 0 {
		t.Skip("there is no default file here: ", errs)
	}
	old, err := whichstore.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ids.db", ".ids.db.id"} {
		if err := os.Rename(filepath.Join(filepath.Dir(old), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := called(t, "store", "recover", "--yes"); code != ui.ExitFailed || remedy.IsFile(old) || !strings.Contains(errs, "there is no file "+old) {
		t.Errorf("exit code %d, a file: %t: %s", code, remedy.IsFile(old), errs)
	}
	if _, errs, code := called(t, "next", "--store", "sqlite:"+filepath.Join(dir, "ids.db")); code != 0 {
		t.Error(errs)
	}
}

// Where the error only names a pool, the hint has the store of the command.
func TestForgottenPool(t *testing.T) {
	dir := emptyHome(t)
	write(t, dir, "a b.db", "not empty")
	url := "sqlite:" + filepath.Join(dir, "a b.db")
	cmd := &cobra.Command{}
	addStore(cmd)
	if err := cmd.ParseFlags([]string{"--store", url}); err != nil {
		t.Fatal(err)
	}
	forgot := fmt.Errorf("once more: %w", &store.ForgotError{Store: "pool web", What: "its record is missing"})
	for _, err := range []error{forgot, errors.Join(forgot, errors.New("another")), ui.Failed("%w; 3 of 4", forgot)} {
		var f *ui.Failure
		if !errors.As(forgotten(cmd, err), &f) || len(f.Hints) != 1 || !strings.Contains(f.Hints[0].Text, "firn store recover --store '"+url+"'") {
			t.Errorf("%v: %+v", err, f.Hints)
		}
	}
	var f *ui.Failure
	ofFile := &lease.GrantFileError{Path: "/run/the grant", Err: forgot}
	if !errors.As(forgotten(cmd, ofFile), &f) || len(f.Hints) != 1 || !strings.HasSuffix(f.Hints[0].Text, "rm '/run/the grant'") {
		t.Errorf("%v: %+v", ofFile, f)
	}
	if err := errors.New("another"); forgotten(cmd, err) != err || forgotten(cmd, nil) != nil {
		t.Error("changed what is no such error")
	}
}
