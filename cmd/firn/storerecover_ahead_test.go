package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// leaveAhead writes the record of a worker of a pool as a process leaves it whose clock says at.
func leaveAhead(t *testing.T, url, pool string, worker int64, at time.Time) {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := term.KeyWorker(pool, worker)
	rec, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	left := term.Record{V: 1, Term: 9, Name: "app-1.7", Horizon: firn.Default().Tick(at), TTL: 30_000}
	if _, err := s.Put(t.Context(), key, left.Encode(), store.Condition{Version: rec.Version}); err != nil {
		t.Fatal(err)
	}
}

// A record far ahead keeps the ids of its pool from starting after a recovery. Everybody who is
// kept from ids by it reads whose record that is, and by how much its clock was ahead: who types
// the command reads it before anything is done.
func TestRecoverAboveAClockThatWasAhead(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create --new --workers 0-1 --store "+url, "pool create web --new --workers 2-3 --store "+url)
	at := time.Now().AddDate(1, 0, 0)
	leaveAhead(t, url, "default", 0, at)
	day := at.UTC().Format("2006-01-02T15:04")
	why := "worker 0 may have issued ids up to " + at.UTC().Format(time.RFC3339) + ": its record was written by app-1.7, whose clock was ahead by at least 87"
	for again := range 2 {
		_, errs, code := called(t, "store", "recover", "--store", url)
		if code != ui.ExitUsage || !strings.Contains(errs, "ids of pool default start at "+day) || !strings.Contains(errs, why) ||
			!strings.Contains(errs, "pools: default, web.") || !strings.Contains(errs, "the ids of the other pools start in about 5m10s, at ") {
			t.Errorf("exit code %d: %s", code, errs)
		}
		if lost := strings.Contains(errs, "if the store has lost nothing, do nothing here: then only workers with such a record are out of use until then"); lost != (again == 0) {
			t.Errorf("recovered before: %t; %s", again > 0, errs)
		}
		out, errs, code := called(t, "store", "recover", "--yes", "--store", url)
		if code != 0 || !strings.Contains(out, "pool default: ") || !strings.Contains(out, "; its ids start at "+day) || !strings.Contains(out, why) ||
			strings.Contains(out, "is safe again: ids start at "+day) {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
	refusedWith(t, []string{"next", "--store", url, "--wait", "0"}, `the ids of pool "default" start at `+day, why)
	if _, errs, _ := called(t, "next", "--pool", "web", "--store", url, "--wait", "0"); strings.Contains(errs, "clock was ahead") {
		t.Errorf("pool web: %s", errs)
	}
	out, errs, _ := called(t, "doctor", "--store", url)
	if !strings.Contains(out+errs, why) {
		t.Errorf("doctor: %s%s", out, errs)
	}
}
