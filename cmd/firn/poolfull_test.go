package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/open"
)

// heldPool makes a pool of workers 0-1 that are held until the test ends, and returns the URL of its store.
func heldPool(t *testing.T, more ...string) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create ledger --new --workers 0-1 --store "+url)
	for _, args := range more {
		mustAll(t, args+" --store "+url)
	}
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for n := range int64(2) {
		l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "ledger", Choice: lease.Only(n)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	return url
}

// To wait is no cure for a full pool whose processes run: they keep their workers. Its hints say
// first what always works, and that works.
func TestHintsOfAFullPool(t *testing.T) {
	url := heldPool(t)
	for _, args := range []string{"next --pool ledger --wait 100ms", "run --pool ledger --wait 100ms"} {
		words := append(strings.Fields(args), "--store", url)
		if words[0] == "run" {
			words = append(words, "--", "true")
		}
		text := refusedWith(t, words, "a process that runs keeps its worker", "end one of these processes",
			"firn pool set ledger --workers 0-3 --store "+url)
		if wider, wait := strings.Index(text, "firn pool set"), strings.Index(text, "--wait"); wait < wider {
			t.Errorf("--wait is offered before what always works:\n%s", text)
		}
	}
	mustAll(t, "pool set ledger --workers 0-3 --store "+url, "next --pool ledger --store "+url)
}

// A shard has no worker of its own, which somebody may think whose two processes have one shard each.
func TestHintsOfAFullPoolOfShards(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create ledger --new --layout instagram --store "+url)
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "ledger", Shard: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	refusedWith(t, []string{"next", "--pool", "ledger", "--shard", "5", "--wait", "100ms", "--store", url},
		"shard 5 has no worker of its own (--shard): a worker makes ids of all shards of layout instagram, and this process may take 1 worker", "let them ask one server, with series: { NAME: { kind: flake, shard: 5 } } in its firn.yaml")
}

// A full pool is not told to take workers that another pool has.
func TestHintsOfAFullPoolBesideOthers(t *testing.T) {
	url := heldPool(t, "pool create web --new --workers 3-511", "pool create mail --new --workers 512-1023")
	refusedWith(t, []string{"next", "--pool", "ledger", "--wait", "100ms", "--store", url}, "firn pool set ledger --workers 0-2 --store "+url)
	mustAll(t, "pool set web --workers 2-511 --store "+url)
	text := refusedWith(t, []string{"next", "--pool", "ledger", "--wait", "100ms", "--store", url}, "end one of these processes")
	if strings.Contains(text, "pool set") {
		t.Errorf("it is told to take workers of another pool:\n%s", text)
	}
}

// Where one worker is asked for, more workers are no cure.
func TestHintsOfAWorkerThatIsHeld(t *testing.T) {
	url := heldPool(t)
	text := refusedWith(t, []string{"next", "--pool", "ledger", "--worker", "1", "--wait", "100ms", "--store", url}, "leave out --worker")
	if strings.Contains(text, "pool set") {
		t.Errorf("it is told to widen the pool:\n%s", text)
	}
}

// A pool that cannot give up its workers yet has changed already: the error says how that ends, and
// how it is taken back.
func TestHintsOfANarrowedPool(t *testing.T) {
	url := heldPool(t, "pool set ledger --workers 0-15")
	narrow := []string{"pool", "set", "ledger", "--workers", "2-15", "--store", url}
	for range 2 { // the second time the pool is changed already
		refusedWith(t, narrow, "cannot give up worker 0 yet",
			"it leases only workers 2-15 from now on, and reserves 0-15", "firn pool set ledger --workers 2-15 --store "+url,
			"to take the change back: firn pool set ledger --workers 0-15 --store "+url)
	}
	mustAll(t, "pool set ledger --workers 0-15 --store "+url)
	if out, _, _ := called(t, "pool", "ls", "--store", url); !strings.Contains(out, "0-15") || strings.Contains(out, "reserves") {
		t.Errorf("not taken back:\n%s", out)
	}
}

// Workers that no process holds fall free by themselves: there is no process to end.
func TestHintsOfAFullPoolThatNobodyHolds(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create ledger --new --workers 0-1 --store "+url)
	for n := range int64(2) {
		leaveAhead(t, url, "ledger", n, time.Now().Add(time.Hour))
	}
	text := refusedWith(t, []string{"next", "--pool", "ledger", "--wait", "100ms", "--store", url}, "no process holds them",
		"firn worker ls", "firn pool set ledger --workers 0-3", "or wait until worker 0 falls free: --wait 1h")
	for _, wrong := range []string{"a process that runs", "end one of these", "who holds them"} {
		if strings.Contains(text, wrong) {
			t.Errorf("it says %q, and no process holds a worker:\n%s", wrong, text)
		}
	}
}
