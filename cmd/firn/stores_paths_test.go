//go:build !windows

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// A relative path counts from a place that stays: of a firn.yaml its folder, of a
// command line the directory where it is typed, of a variable nothing does.
func TestRelativeStores(t *testing.T) {
	dir := emptyHome(t)
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "a/firn.yaml", "store: sqlite:ids.db\n")
	t.Chdir(filepath.Join(dir, "b"))

	if _, errs, code := called(t, "next", "--config", "../a/firn.yaml"); code != 0 {
		t.Fatal(errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "ids.db")); err != nil {
		t.Errorf("a path of firn.yaml: %v", err)
	}
	if _, errs, code := called(t, "next", "--store", "sqlite:./here.db"); code != 0 {
		t.Fatal(errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "here.db")); err != nil {
		t.Errorf("a path of the command line: %v", err)
	}

	// A file that two directories share by links.
	for _, name := range []string{"a", "b"} {
		if err := os.Symlink(filepath.Join(dir, "shared.yaml"), filepath.Join(dir, name, "linked.yaml")); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{"store: sqlite:ids.db\n": ui.ExitUsage, "store: sqlite:" + dir + "/shared.db\n": 0} {
			write(t, dir, "shared.yaml", text)
			_, errs, code := called(t, "next", "--config", filepath.Join(dir, name, "linked.yaml"))
			if code != want || code != 0 && !strings.Contains(errs, "linked.yaml:1:8: store: sqlite:ids.db is a relative path, and this file is a symbolic link") {
				t.Errorf("a linked file: exit code %d, %s", code, errs)
			}
		}
	}

	// A hint that is followed in two directories leads to one store.
	t.Setenv("FIRN_STORE", "sqlite:of-variable.db")
	_, errs, code := called(t, "next")
	if code != ui.ExitUsage || !strings.Contains(errs, "write the absolute path of the one file that all processes of this host use") || strings.Contains(errs, dir) {
		t.Errorf("FIRN_STORE: exit code %d, %s", code, errs)
	}
	t.Chdir(filepath.Join(dir, "a"))
	if _, there, _ := called(t, "next"); there != errs {
		t.Errorf("FIRN_STORE: in one directory\n%sin another\n%s", errs, there)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := os.Stat(filepath.Join(dir, name, "of-variable.db")); err == nil {
			t.Error("FIRN_STORE: the file was made")
		}
	}
}

// Hints that name a store lead everybody who reads them to one: a file of each directory,
// or of each container, would give the same ids.
func TestHintsNameOneStore(t *testing.T) {
	dir := emptyHome(t)
	for _, tt := range []struct{ name, env, args string }{
		{"a container", "KUBERNETES_SERVICE_HOST=10.0.0.1", "next"},
		{"a container, a look", "KUBERNETES_SERVICE_HOST=10.0.0.1", "pool ls"},
		{"a container, doctor", "KUBERNETES_SERVICE_HOST=10.0.0.1", "doctor"},
		{"no home", "HOME=", "next"},
		{"a server for other hosts", "", "serve --resp 0.0.0.0:0 --insecure-no-auth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				t.Setenv(name, value)
			}
			out, errs, code := called(t, strings.Fields(tt.args)...)
			text := out + errs
			if code == 0 || !strings.Contains(text, "postgres://") || strings.Contains(text, dir) || strings.Contains(text, "PATH") || strings.Contains(text, "/var/lib") {
				t.Errorf("exit code %d: %s", code, text)
			}
		})
	}
}

// Who writes a store wrongly means one that firn does not know: no other one is named.
func TestHintsNameNoStore(t *testing.T) {
	dir := emptyHome(t)
	for _, tt := range []struct{ env, args string }{
		{"sqlite:ids.db", "next"},
		{"ids.db", "next"},
		{"", "next --store ids.db"},
		{"", "next --store memory:"},
		{"", "next --store postgre://db/app"},
	} {
		t.Run(tt.env+tt.args, func(t *testing.T) {
			if tt.env != "" {
				t.Setenv("FIRN_STORE", tt.env)
			}
			_, errs, code := called(t, strings.Fields(tt.args)...)
			if code != ui.ExitUsage || strings.Contains(errs, "sqlite:/") || strings.Contains(errs, "postgres://") || strings.Contains(errs, dir) || !strings.Contains(errs, "docs/guides/stores.md") {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
}

// TestCopiedStores follows, to the letter, what is printed about two copies of one
// file. Nothing of it makes both of them usable without a person who says that
// there is only one.
func TestCopiedStores(t *testing.T) {
	dir := emptyHome(t)
	original := filepath.Join(dir, "ids.db")
	if _, errs, code := called(t, "next", "--store", "sqlite:"+original); code != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "copy"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "copy/ids.db", string(b))
	url := "sqlite:" + filepath.Join(dir, "copy", "ids.db")

	refused := func(args ...string) string {
		t.Helper()
		t.Setenv("FIRN_STORE", url)
		out, errs, code := called(t, args...)
		if code == 0 || args[0] == "next" && out != "" {
			t.Fatalf("firn %q on a copy: exit code %d, %s%s", args, code, out, errs)
		}
		return out + errs
	}
	for _, text := range []string{
		refused("next"), refused("next", "orders", "--kind", "sequence"), refused("doctor"),
		refused("serve", "--resp", "127.0.0.1:0", "--http", "off"), refused("run", "--", "true"),
	} {
		for _, want := range []string{
			"if the original is still there, use that one", "only if you moved the file here yourself, it is no copy and no backup",
			"only if no process will use the original or another copy again, as after you put a backup back: stop all processes that use this one, then: firn store recover --store " + url,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("not %q in\n%s", want, text)
			}
		}
	}

	// A copy beside the original: no hint names a hidden file that is not there.
	write(t, dir, "copy.db", string(b))
	url = "sqlite:" + filepath.Join(dir, "copy.db")
	if text := refused("next"); strings.Contains(text, "mv ") || strings.Contains(text, "renamed") {
		t.Errorf("a copy beside the original: %s", text)
	}
	url = "sqlite:" + filepath.Join(dir, "copy", "ids.db")

	// The hidden file is moved to the copy: it is a copy all the same, and now the original
	// has no hidden file.
	if err := os.Rename(filepath.Join(dir, ".ids.db.id"), filepath.Join(dir, "copy", ".ids.db.id")); err != nil {
		t.Fatal(err)
	}
	if text := refused("next"); strings.Contains(text, "mv ") || !strings.Contains(text, "only if no process will use the original") {
		t.Errorf("a copy with the original's hidden file: %s", text)
	}
	url = "sqlite:" + original
	refused("next")

	// "firn store recover" asks, or wants --yes.
	text := refused("store", "recover")
	if !strings.Contains(text, "will no other copy of the file be used?") || !strings.Contains(text, "both make the same ids") {
		t.Errorf("store recover does not ask about copies: %s", text)
	}
	refused("next")
}

// A file that got another name: the mv that the hint shows is typed as it stands.
func TestRenamedStore(t *testing.T) {
	dir := emptyHome(t)
	first, errs, code := called(t, "next", "--store", "sqlite:ids.db")
	if code != 0 {
		t.Fatal(errs)
	}
	if err := os.Rename("ids.db", "the other.db"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"next"}, {"pool", "ls"}, {"pool", "show"}, {"pool", "ensure"}, {"worker", "ls"}} {
		_, errs, code = called(t, append(args, "--store", "sqlite:the other.db")...)
		if code == 0 || !strings.Contains(errs, "is a copy, or has forgotten") {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
	_, hint, ok := strings.Cut(errs, "hint: the file was renamed, and its hidden file was not: ")
	if !ok {
		t.Fatal(errs)
	}
	hint, _, _ = strings.Cut(hint, "\n")
	if out, err := exec.Command("sh", "-c", hint).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v, %s", hint, err, out)
	}
	second, errs, code := called(t, "next", "--store", "sqlite:the other.db")
	if code != 0 || second <= first {
		t.Errorf("after %q in %s: exit code %d, %s; %s, and %s before", hint, dir, code, errs, second, first)
	}
	if out, errs, code := called(t, "next", "--store", "sqlite:ids.db"); code == 0 {
		t.Errorf("a program that names the old path makes a second store: %s%s", out, errs)
	}
}

// What is said of a store that cannot be used does not send anybody to another one.
func TestHintsKeepTheStore(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	if _, errs, code := called(t, "next", "--store", "sqlite:"+path); code != 0 {
		t.Fatal(errs)
	}
	_, errs, code := called(t, "pool", "ls", "--store", "sqlite:"+filepath.Join(dir, "mistyped.db"))
	lost, never := strings.Index(errs, "only if the file and all its copies are lost"), strings.Index(errs, "only if there never was one")
	if code == 0 || !strings.Contains(errs, "two stores make the same ids") || lost < 0 || never < lost {
		t.Errorf("a store that is not there: exit code %d, %s", code, errs)
	}
}
