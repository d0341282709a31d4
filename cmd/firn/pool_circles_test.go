package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/sqlite"
)

// What a hint says to type is not what was just refused.
func TestHintsOfPoolsAreNoCircle(t *testing.T) {
	path := filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	must := func(args ...string) {
		t.Helper()
		if _, errs, code := called(t, args...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
	}
	must("pool", "create", "--new", "--workers", "0-1023")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(700)})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	if _, errs, code := called(t, "pool", "set", "--workers", "0-511"); code != ui.ExitFailed || !strings.Contains(errs, "cannot give up worker 700 yet") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if out, errs, _ := called(t, "pool", "ls"); !strings.Contains(out, "0-511 (reserves 0-1023)") {
		t.Errorf("pool ls does not say what the pool reserves:\n%s%s", out, errs)
	}
	for _, args := range [][]string{
		{"pool", "ensure", "b", "--workers", "512-1023"},
		{"pool", "create", "b", "--workers", "512-1023", "--new"},
		{"next", "--layout", "js53"},
	} {
		out, errs, code := called(t, args...)
		if code == 0 {
			t.Errorf("%v: not refused", args)
		}
		for _, told := range toldCommands(out + errs) {
			_, again, same := called(t, told...)
			if slices.Equal(told, args) || same != 0 && strings.Contains(again, "could repeat ids") && told[1] != "set" {
				t.Errorf("%v: the hint is refused for the same reason: %v\n%s", args, told, errs)
			}
		}
	}
}

// Workers that a pool had with another layout are never free: no hint offers them.
func TestHintOfWorkersOfAnotherLayout(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	for _, args := range []string{"pool create --new", "pool set --workers 0-511"} {
		if _, errs, code := called(t, strings.Fields(args)...); code != 0 {
			t.Fatalf("%s: %s", args, errs)
		}
	}
	later := strings.Fields("pool ensure b --workers 512-1023 --layout time:41@1ms,worker:10,seq:12;epoch=2020-01-01T00:00:00Z")
	_, errs, code := called(t, later...)
	if code != ui.ExitFailed || !strings.Contains(errs, `which had workers 512-1023 with another layout`) || strings.Contains(errs, "give each its own workers") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
