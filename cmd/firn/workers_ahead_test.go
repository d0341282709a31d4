//go:build !windows

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// holdAhead writes that a process holds a worker of pool ledger, and that its ids may lie up to
// five minutes ahead of the clock. It returns when the last of them lies.
func holdAhead(t *testing.T, path string, worker int64) (horizon string) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	at := time.Now().Add(5 * time.Minute)
	r := term.Record{V: 1, Term: 1, Owner: "x", Name: "ledger-0:14102", Horizon: firn.Default().Tick(at), TTL: 30_000}
	if _, err := st.Put(t.Context(), term.KeyWorker("ledger", worker), r.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	return at.UTC().Format("2006-01-02T15:04:05")
}

// A process died whose ids may lie ahead of the clock. Nobody can use its worker before the clock has
// passed these ids, and a release changes nothing about that. So no hint offers a release; the release
// says until when nobody can use the worker; and pool ls counts a held worker that is leaving the pool.
func TestAWorkerAheadOfTheClockIsNotFree(t *testing.T) {
	path := filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	mustAll(t, "pool create ledger --new --workers 0-15")
	horizon := holdAhead(t, path, 0)
	holdAhead(t, path, 7)

	_, errs, code := called(t, "pool", "set", "ledger", "--workers", "4-15")
	if code != 1 || !strings.Contains(errs, "cannot give up worker 0 yet: it is held by ledger-0:14102, until ") {
		t.Fatalf("%d: %s", code, errs)
	}
	if strings.Contains(errs, "firn worker release 0") || !strings.Contains(errs, "hint: if ledger-0:14102 died, worker 0 can go out at ") {
		t.Errorf("the hints have to say that a release does not help:\n%s", errs)
	}
	until := untilOf(t, errs)
	if out, errs, _ := called(t, "pool", "ls", "--json"); !strings.Contains(out, `"workers":"4-15","giving_up":"0-15","held":2,"free":11,"unusable":0`) {
		t.Errorf("one worker that stays and one that goes out are held: %s%s", out, errs)
	}

	out, errs, code := called(t, "worker", "release", "7", "--pool", "ledger", "--yes")
	if code != 0 || strings.Contains(out, "is free") || !strings.Contains(out, "worker 7 of pool ledger is released; it cannot be used before "+horizon[:16]) {
		t.Errorf("%d: %s%s; want that it cannot be used before %s", code, out, errs, horizon)
	}
	out, errs, _ = called(t, "worker", "release", "0", "--pool", "ledger", "--yes", "--json")
	var line struct {
		Released bool   `json:"released"`
		Until    string `json:"unusable_until"`
	}
	if err := json.Unmarshal([]byte(out), &line); err != nil || !line.Released || !strings.HasPrefix(line.Until, horizon[:16]) {
		t.Errorf("%s%s: unusable until %s, want %s", out, errs, line.Until, horizon)
	}
	_, errs, _ = called(t, "pool", "set", "ledger", "--workers", "4-15")
	if !strings.Contains(errs, "it may have issued ids ahead of the clock, until ") || untilOf(t, errs) != until {
		t.Errorf("after the release it is another instant than %s:\n%s", until, errs)
	}
}

// untilOf is the instant of a refusal to give a worker up.
func untilOf(t *testing.T, errs string) string {
	t.Helper()
	_, after, ok := strings.Cut(errs, ", until ")
	if !ok {
		t.Fatalf("no instant in %s", errs)
	}
	at, _, _ := strings.Cut(after, " ")
	return at
}
