package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// Where the clock of the store is behind, ids that start by it start before those end that other
// processes still make. So nothing starts by it, and no hint says which clock is right.
func TestClockOfTheStoreBehind(t *testing.T) {
	emptyHome(t)
	url := testserver.PostgresBehind(t, 10*time.Minute).URL()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := pool.Create(t.Context(), s, pool.Default, nil); err != nil {
		t.Fatal(err)
	}
	before := everyRecord(t, s)
	for _, args := range [][]string{
		{"store", "recover"}, {"store", "recover", "--yes"}, {"store", "recover", "--yes", "--json"}, {"pool", "ensure", "web", "--may-repeat", "default"}, {"pool", "create", "web", "--new", "--may-repeat", "default"}, {"next", "--wait", "0"},
	} {
		out, errs, code := called(t, append(args, "--store", url)...)
		if code != ui.ExitFailed || out != "" || !strings.Contains(errs, "10m0s ahead of the store's") || !strings.Contains(errs, "one of the two is wrong") {
			t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
		}
		if !strings.Contains(errs, "compare both with a clock that you trust") || strings.Contains(errs, "set this host's clock") {
			t.Errorf("%q: %s", args, errs)
		}
	}
	if after := everyRecord(t, s); after != before {
		t.Errorf("the store was changed:\n%s\n%s", before, after)
	}
	if _, errs, code := called(t, "store", "recover", "--moved", "--yes", "--store", url); code != 0 {
		t.Errorf("%d: %s", code, errs) // it reckons nothing
	}
}

func everyRecord(t *testing.T, s store.Store) string {
	t.Helper()
	recs, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, rec := range recs {
		b.WriteString(rec.Key + " " + string(rec.Value) + "\n")
	}
	return b.String()
}

// A host whose clock is behind the store's waits longer than others, and is told that its clock is behind.
func TestClockOfTheHostBehind(t *testing.T) {
	emptyHome(t)
	url := testserver.PostgresBehind(t, -2*time.Hour).URL()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, first := range map[string]int64{"default": 0, "web": 2} { // on hosts whose clocks are right: this one may not
		if _, err := pool.Create(t.Context(), s, name, &pool.Options{First: first, Workers: 2}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(2) { // of processes whose clocks are right
		leaveAhead(t, url, "default", n, time.Now().Add(2*time.Hour))
	}
	key := term.KeyPool("web")
	rec, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		t.Fatal(err)
	}
	p.Floor = firn.Default().Tick(time.Now().Add(2*time.Hour + 5*time.Minute)) // as another host recovered it
	if _, err := s.Put(t.Context(), key, p.Encode(), store.Condition{Version: rec.Version}); err != nil {
		t.Fatal(err)
	}
	for name, what := range map[string]string{"default": "has issued ahead of this clock", "web": `the ids of pool "web" start at `} {
		refusedWith(t, []string{"next", "--pool", name, "--wait", "0", "--store", url}, what,
			"this host's clock is ", " behind the store's: one of the two is wrong", "compare both with a clock that you trust", " --wait ")
	}
}
