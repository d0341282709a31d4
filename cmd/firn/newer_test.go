//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// buildNewer builds the command of a later version, which writes records of format 2 and reads 1 as well.
func buildNewer(t *testing.T) (program string) {
	t.Helper()
	const file = "internal/record/record.go"
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	for was, is := range map[string]string{"const Format = 1\n": "const Format = 2\n", "v.Version() == Format {": "v.Version() >= 1 && v.Version() <= Format {"} {
		if bytes.Count(text, []byte(was)) != 1 {
			t.Fatalf("%s has not once %q", file, was)
		}
		text = bytes.Replace(text, []byte(was), []byte(is), 1)
	}
	dir := t.TempDir()
	later := write(t, dir, "record.go", string(text))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): later}})
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "newer")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", write(t, dir, "overlay.json", string(overlay)), "-o", program, "./cmd/firn")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// recordsOf returns the records of a store.
func recordsOf(t *testing.T, url string) map[string]string {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, rec := range list {
		all[rec.Key] = string(rec.Value)
	}
	return all
}

// TestNewerBesideOlder: while a deployment rolls, a later version of firn writes records that this one cannot read.
// This one refuses them, writes none of them, and gives no number that the later version gives.
func TestNewerBesideOlder(t *testing.T) {
	testserver.OnlyLong(t) // it builds the command again; TestLaterFormats of package recovery has each record
	t.Parallel()
	program := buildNewer(t)
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	given := map[string]bool{}
	give := func(text string) {
		t.Helper()
		for _, one := range strings.Fields(text) {
			if given[one] {
				t.Errorf("%s was given twice", one)
			}
			given[one] = true
		}
	}
	newer := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+os.DevNull, "FIRN_STORE="+url)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("newer %v: %v\n%s", args, err, &errs)
		}
		return string(out)
	}

	// The older version begins, and serves while the newer one begins to use the store.
	firnOn(t, url, 0, "pool", "create", "--new")
	firnOn(t, url, 0, "series", "create", "orders", "--kind", "sequence", "--cache", "5")
	firnOn(t, url, 0, "series", "create", "invoice", "--pattern", "INV-{6}")
	s := serve(t, dir, "--store", url)
	drawn := func(series string) error {
		text, err := s.redis("").Do(t.Context(), "FIRN.NEXT", series).Text()
		if err == nil {
			give(text)
		}
		return err
	}
	for _, series := range []string{"photo", "orders", "invoice"} {
		if err := drawn(series); err != nil {
			t.Errorf("%s: %v", series, err)
		}
	}
	give(newer("next"))
	give(newer("next", "orders", "-n", "20"))
	give(newer("next", "invoice"))
	for range 10 {
		if err := drawn("photo"); err != nil {
			t.Errorf("ids of a worker that the newer version does not use: %v", err)
		}
	}
	for _, series := range []string{"orders", "invoice"} {
		var err error
		for range 50 {
			if err = drawn(series); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), "written by a later firn") {
			t.Errorf("%s after the newer version has written its record: %v", series, err)
		}
	}
	give(newer("next", "orders", "-n", "20"))
	give(newer("next", "invoice"))
	s.stop()

	// No command of the older version writes what the newer one has written.
	later := func() map[string]string {
		all := recordsOf(t, url)
		maps.DeleteFunc(all, func(_, value string) bool { return !strings.Contains(value, `"v":2`) })
		return all
	}
	before := later()
	if len(before) < 3 {
		t.Errorf("the newer version has written %v", before)
	}
	for _, args := range [][]string{
		{"next", "orders"},
		{"next", "invoice"},
		{"series", "set", "orders", "--cache", "7"},
		{"series", "raise", "orders", "900"},
		{"series", "raise", "invoice", "INV-000900"},
		{"store", "recover", "--numbers", "10", "--yes"},
	} {
		if said := firnOn(t, url, 1, args...); !strings.Contains(said, "written by a later firn") {
			t.Errorf("%v: %s", args, said)
		}
		if after := later(); !maps.Equal(before, after) {
			t.Errorf("%v has written\n%v\nbefore\n%v", args, after, before)
		}
	}
	if said := firnOn(t, url, 3, "doctor"); !strings.Contains(said, "written by a later firn") {
		t.Error(said)
	}
	give(newer("next", "orders"))
	give(newer("next"))
	if len(given) < 50 {
		t.Errorf("only %d were given", len(given))
	}
}
