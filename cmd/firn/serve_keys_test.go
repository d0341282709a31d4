//go:build !windows

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/public"
)

// newKey is the text of a new key.
func newKey(t *testing.T, number int) string {
	t.Helper()
	key, err := public.NewKey(number)
	if err != nil {
		t.Fatal(err)
	}
	return key.Secret() + "\n"
}

// A reload does not take another secret under the number of a key, also where the key was away in
// between: what was given under the old one could not be read, or would be read wrongly.
func TestServeKeepsKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := func(name string, all ...string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(all, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two, cipher := newKey(t, 1), newKey(t, 2), newKey(t, 1)
	keys("photo.keys", one)
	keys("bills.keys", cipher)
	write(t, dir, "firn.yaml", "store: sqlite:"+filepath.Join(dir, "ids.db")+`
series:
  photo: { kind: flake, public: { form: opaque, prefix: photo, keys: photo.keys }, answers: public }
  bills: { kind: sequence, public: { form: cipher, keys: bills.keys }, answers: public }
  video: { kind: flake, public: { form: opaque, prefix: video, keys: photo.keys } }
`)
	s := serve(t, dir)
	_, text := s.do("POST", "/v1/series/photo/next", "")
	refused := func(hint string) {
		t.Helper()
		s.reload(notReloaded)
		last := s.log.String()[strings.LastIndex(s.log.String(), notReloaded):]
		if !strings.Contains(last, "another secret") && !strings.Contains(last, "another one than") || !strings.Contains(last, hint) {
			t.Error(last)
		}
		if _, text := s.get("/metrics"); !strings.Contains(text, "\nfirn_last_reload_successful 0\n") {
			t.Error("the refused reload is not in the metrics")
		}
	}
	keys("photo.keys", newKey(t, 1))
	refused("put the old key 1 back; a new key comes beside it, with another number: firn public keygen --append --out ")
	keys("photo.keys", two) // key 1 is taken out
	s.reload(reloaded)
	keys("photo.keys", two, newKey(t, 1))
	refused("put the old key 1 back")
	keys("photo.keys", two, one)
	s.reload(reloaded)
	keys("bills.keys", newKey(t, 2))
	refused("a cipher has one key for ever")
	keys("bills.keys", cipher)
	s.reload(reloaded)
	if code, answer := s.do("GET", "/v1/decode/"+between(text, `"values":["`), ""); code != http.StatusOK {
		t.Errorf("%s: %d %s", text, code, answer)
	}
	s.stop()
}

// between is what follows a text up to the next quotation mark.
func between(text, before string) string {
	_, after, _ := strings.Cut(text, before)
	within, _, _ := strings.Cut(after, `"`)
	return within
}

// A server that answers with plain ids reads the public ids of a series that it has the keys of, and
// says which setting is missing where it has not.
func TestServeReadsFormsItDoesNotGive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "firn.keys"), []byte(newKey(t, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "firn.yaml", "store: sqlite:"+filepath.Join(dir, "ids.db")+`
series:
  photo: { kind: flake, public: { form: opaque, prefix: photo, keys: firn.keys } }
  video: { kind: flake, public: { form: opaque, prefix: video } }
  bills: { kind: sequence, public: { form: cipher, keys: firn.keys } }
`)
	s := serve(t, dir)
	_, text := s.do("POST", "/v1/series/photo/next", "")
	id := between(text, `"values":["`)
	opaque := func(series string) string {
		t.Helper()
		p := command(t, "", "public", "encode", "--as", "opaque:"+series, "--series", series, "--keys", filepath.Join(dir, "firn.keys"), id)
		out, err := p.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if _, text := s.do("GET", "/v1/decode/"+opaque("photo"), ""); !strings.Contains(text, id) || !strings.Contains(text, `"form":"opaque"`) {
		t.Errorf("HTTP: %s", text)
	}
	if got, err := s.redis("").Do(t.Context(), "FIRN.DECODE", opaque("photo")).Result(); err != nil || !strings.Contains(fmt.Sprint(got), id) {
		t.Errorf("FIRN.DECODE: %v, %v", got, err)
	}
	if _, text := s.do("GET", "/console/decode/"+opaque("photo"), ""); !strings.Contains(text, id) {
		t.Errorf("console: %s", text)
	}
	if _, text := s.do("GET", "/v1/decode/"+opaque("video"), ""); !strings.Contains(text, "does not have the keys of series video: its firn.yaml needs public: { form: opaque, keys: FILE } there") {
		t.Errorf("without keys: %s", text)
	}
	if _, text := s.do("GET", "/v1/decode/"+id, ""); strings.Contains(text, `"form"`) || !strings.Contains(text, id) {
		t.Errorf("a plain id is read in a form: %s", text)
	}
	s.stop()
}

// timeout(1) sends a signal to its child and one to the group: they are of one press, and the server
// answers what was asked.
func TestServeTwoSignalsOfOnePress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	for range 5 {
		s.signal(syscall.SIGTERM)
	}
	if code := s.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(s.log.String(), "stopping at once") {
		t.Errorf("one press counts as two:\n%s", s.log)
	}
}

// Leaf's snowflake route gives ids with a time: it refuses a sequence, whose number may be that of
// another row, and names the route that has it.
func TestServeLeafSnowflakeOfASequence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:"+filepath.Join(dir, "ids.db")+"\nlisten: { foreign: true }\nseries:\n  "+photoLine+"  "+ordersLine)
	s := serve(t, dir)
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{"/api/snowflake/get/orders", http.StatusConflict, "GET /api/segment/get/orders"},
		{"/api/segment/get/orders", http.StatusOK, "1"},
		{"/api/snowflake/get/photo", http.StatusOK, ""},
	} {
		if code, text := s.get(tt.path); code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s", tt.path, code, text)
		}
	}
	s.stop()
}
