package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// Where the other pools have every worker, what the hint says to type creates the pool.
func TestPoolBesideAFullStore(t *testing.T) {
	for _, test := range []struct{ name, made, args, first string }{
		{"all workers", "pool create a --workers 0-511 --new; pool create b --workers 512-1023 --new", "pool create c --new", "--pool a"},
		{"a range", "pool create a --workers 0-511 --new; pool create b --workers 512-1023 --new", "pool create c --workers 700-800 --new", "--pool b"},
		{"ensured", "pool create a --workers 0-511 --new; pool create b --workers 512-1023 --new", "pool ensure c", "--pool a"},
		{"three", "pool create a --workers 0-0 --new; pool create b --workers 1-1 --new; pool create d --workers 2-1023 --new", "pool create c --new", "--pool a"},
		{"another layout", "pool create a --workers 0-511 --new; pool create b --workers 512-1023 --new", "pool create c --layout twitter --new", "--pool a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
			mustAll(t, strings.Split(test.made, "; ")...)
			_, errs, code := called(t, strings.Fields(test.args)...)
			if code != ui.ExitFailed || !strings.Contains(errs, test.first) {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if claim := "--may-repeat a --may-repeat b"; test.name != "a range" && !strings.Contains(errs, claim) {
				t.Errorf("the claim is not for every pool that has the workers: %s", errs)
			}
			told := toldCommands(errs)
			if len(told) < 2 {
				t.Fatalf("no way that works: %s", errs)
			}
			for _, args := range told {
				if _, again, code := called(t, args...); code != 0 {
					t.Errorf("%v: %s\nafter: %s", args, again, errs)
				}
			}
		})
	}
}

// Where no pool can give up a worker, the hint has no range of workers.
func TestPoolWithoutAWorkerLeft(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	const small = " --layout time:41@1ms,worker:1,seq:12;epoch=2020-01-01T00:00:00Z --new"
	mustAll(t, "pool create a --workers 0-0"+small, "pool create b --workers 1-1"+small)
	_, errs, code := called(t, strings.Fields("pool create c"+small)...)
	if code != ui.ExitFailed || !strings.Contains(errs, "no pool has a worker to spare") || strings.Contains(errs, "--workers") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Workers that two pools have cannot be had by narrowing one of them.
func TestPoolBesideTwoOfTheSameWorkers(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create a --new", "pool create b --may-repeat a --new")
	for _, args := range []string{"pool create c --new", "next --pool c"} {
		_, errs, code := called(t, strings.Fields(args)...)
		if code != ui.ExitFailed || strings.Contains(errs, "pool set") || !strings.Contains(errs, "--may-repeat a --may-repeat b") {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}
