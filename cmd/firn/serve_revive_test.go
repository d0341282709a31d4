//go:build !windows

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A lease that never was, because the store was not there and then had another layout, holds no
// worker: SIGHUP opens one with the same worker in its place.
func TestServeRevivesWhatHeldNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "late", "ids.db")
	config := func(pool string) {
		write(t, dir, "firn.yaml", "store: "+url+"\npools: { main: { worker: 3, "+pool+" } }\nseries: { photo: { kind: flake } }\n")
	}
	away := filepath.Join(dir, "away")
	if err := os.Mkdir(filepath.Join(dir, "late"), 0o755); err != nil {
		t.Fatal(err)
	}
	firnOn(t, url, 0, "pool", "create", "main", "--new", "--layout", "twitter")
	if err := os.Rename(filepath.Join(dir, "late"), away); err != nil {
		t.Fatal(err)
	}
	config("layout: leaf")
	s := serve(t, dir)
	if err := os.Rename(away, filepath.Join(dir, "late")); err != nil {
		t.Fatal(err)
	}
	s.until("the layout differs", func() bool {
		return strings.Contains(s.log.String(), "cannot be opened; SIGHUP tries again when that is mended")
	})
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nfirn_last_reload_successful 1\n") {
		t.Error(text)
	}
	config("layout: leaf, outage: 2m") // another lease that cannot be had either
	s.reload(notReloaded)
	s.until("the refused reload is a metric", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "\nfirn_last_reload_successful 0\n")
	})
	if _, text := s.get("/console/state"); !strings.Contains(text, `"reload":{"at":"20`) || !strings.Contains(text, `"problem":"`) {
		t.Error(text)
	}
	if strings.Contains(s.log.String(), "given back at a restart") {
		t.Error(s.log)
	}
	config("layout: twitter")
	s.reload(reloaded)
	s.until("the reload is a metric", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "\nfirn_last_reload_successful 1\n")
	})
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	s.stop()
}

// What waits for its store holds nothing either: it makes way for other settings of the same
// worker, and waits on where these cannot be had.
func TestServeRevivesWhatWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "late", "ids.db")
	config := func(pool string) {
		write(t, dir, "firn.yaml", "store: "+url+"\npools: { main: { "+pool+" } }\nseries: { photo: { kind: flake } }\n")
	}
	if err := os.Mkdir(filepath.Join(dir, "late"), 0o755); err != nil {
		t.Fatal(err)
	}
	firnOn(t, url, 0, "pool", "create", "main", "--new", "--workers", "0-7")
	if err := os.Rename(filepath.Join(dir, "late"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	config("worker: 3")
	s := serve(t, dir)
	config("worker: 3, layout: twitter")
	s.reload(notReloaded)
	if strings.Contains(s.log.String(), "given back at a restart") {
		t.Error(s.log)
	}
	if err := os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "late")); err != nil {
		t.Fatal(err)
	}
	s.until("what was paused is open", func() bool {
		code, _ := s.do("POST", "/v1/series/photo/next", "")
		return code == http.StatusOK
	})
	s.stop()
}
