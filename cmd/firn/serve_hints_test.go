//go:build !windows

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

// refused starts a server that ends, and returns what it said.
func refused(t *testing.T, dir string, want ...string) string {
	t.Helper()
	s := serving(t, dir)
	err := s.Run()
	for _, w := range want {
		if err == nil || !strings.Contains(s.log.String(), w) {
			t.Errorf("%v, want %q in\n%s", err, w, s.log)
		}
	}
	return s.log.String()
}

// A form without keys is told by its series and line, and the cure is a line of firn.yaml.
func TestServeFormWithoutKeys(t *testing.T) {
	dir := emptyHome(t)
	write(t, dir, "firn.yaml", `store: sqlite:ids.db
series:
  photo: { kind: flake, public: opaque, answers: public }
`)
	const cure = "public: { form: opaque, keys: firn.keys }"
	if got := refused(t, dir, "series photo: ", "firn.yaml:3", cure); strings.Contains(got, "--keys") {
		t.Errorf("serve has no --keys:\n%s", got)
	}
	if out, errs, code := called(t, "config", "check"); code != ui.ExitFound || !strings.Contains(out, "firn.yaml:3:") || !strings.Contains(out, cure) {
		t.Errorf("config check: %d\n%s%s", code, out, errs)
	}
	mustAll(t, "public keygen --out firn.keys")
	write(t, dir, "firn.yaml", strings.ReplaceAll(`store: sqlite:ids.db
series:
  photo: { kind: flake, CURE, answers: public }
`, "CURE", cure))
	s := serving(t, dir)
	s.Env = append(s.Env, "FIRN_KEYS=other.keys")
	s.begin()
	if !strings.Contains(s.log.String(), "firn serve does not read the variable FIRN_KEYS") {
		t.Errorf("want a warning of FIRN_KEYS in\n%s", s.log)
	}
	s.stop()
	if err := os.Remove("firn.keys"); err != nil {
		t.Fatal(err)
	}
	got := refused(t, dir, "if there was a key before, put it back", "only if there never was a key: firn public keygen --out ")
	if strings.Index(got, "put it back") > strings.Index(got, "firn public keygen") {
		t.Errorf("a new key comes first:\n%s", got)
	}
}

// A file that was moved away and back is in order: the first hint is to open it again.
func TestServeFileMovedAway(t *testing.T) {
	dir := emptyHome(t)
	s := serve(t, dir, "--store", "sqlite:"+dir+"/ids.db")
	draw := func() string {
		_, text := s.do("POST", "/v1/series/photo/next", "")
		return text
	}
	draw()
	if err := os.Rename("ids.db", "ids.moved"); err != nil {
		t.Fatal(err)
	}
	s.until("it notices", func() bool {
		return strings.Contains(draw(), "removed or moved away") || strings.Contains(draw(), "hint")
	})
	if text := draw(); !strings.Contains(text, "put it back, and restart the programs that stopped") {
		t.Errorf("while it is away: %s", text)
	}
	if err := os.Rename("ids.moved", "ids.db"); err != nil {
		t.Fatal(err)
	}
	text := draw()
	if i, j := strings.Index(text, "send SIGHUP"), strings.Index(text, "firn store recover"); i < 0 || j >= 0 && j < i {
		t.Errorf("when it is back: %s", text)
	}
	s.signal(syscall.SIGHUP)
	s.until("it gives ids again", func() bool { return strings.Contains(draw(), "values") })
	s.stop()
}

// On a lossy store, the hints are for firn.yaml, nothing is told to be created that is
// then refused.
func TestServeLossySaysTheLine(t *testing.T) {
	dir := emptyHome(t)
	redis := testserver.Redis(t)
	if _, errs, code := called(t, "pool", "create", "--new", "--store", redis.URL()); code != 0 {
		t.Fatal(errs)
	}
	write(t, dir, "firn.yaml", "store: "+redis.URL()+`
series:
  photo: { kind: flake }
  orders: { kind: sequence }
`)
	got := refused(t, dir, "series: { orders: { kind: sequence, on-lossy-store: may-repeat } }")
	for _, not := range []string{"--on-lossy-store", "series create"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%s", not, got)
		}
	}
}

// A second token is an entry of the tokens that are there.
func TestServeTokenEntry(t *testing.T) {
	dir := emptyHome(t)
	first, _, _ := called(t, "token", "create", "a")
	_, second, code := called(t, "token", "create", "b")
	config := strings.Split(first, "\n")[1]
	_, entry, found := strings.Cut(strings.TrimSpace(second), "to them: ")
	if code != 0 || !found {
		t.Fatalf("%d %s", code, second)
	}
	write(t, dir, "firn.yaml", strings.TrimSuffix(config, " }")+", "+entry+" }\n")
	mustAll(t, "config check")
}
