package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// The hint for a worker that a pool does not have is a range that the pool can have, or says
// why there is none.
func TestWorkerOutsideHint(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", url)
	for _, pool := range [][]string{{"low", "8-15"}, {"shop", "32-63"}, {"mail", "128-255"}} {
		if _, errs, code := called(t, "pool", "create", pool[0], "--new", "--layout", "classic", "--workers", pool[1]); code != 0 {
			t.Fatal(errs)
		}
	}
	for worker, want := range map[string]string{
		"20":  "or widen the pool: firn pool set shop --workers 20-63\n",
		"70":  "or widen the pool: firn pool set shop --workers 32-127\n",
		"130": "or take one that it has: worker 130 is of pool mail, which has workers 128-255\n",
		"300": "or take one that it has: workers 128-255, which lie between worker 300 and those that it has, are of pool mail\n",
		"3":   "or take one that it has: workers 8-15, which lie between worker 3 and those that it has, are of pool low\n",
	} {
		_, errs, code := called(t, "next", "--pool", "shop", "--worker", worker)
		if code != ui.ExitUsage || !strings.Contains(errs, "hint: leave out --worker to take any free one, "+want) {
			t.Errorf("worker %s: exit code %d, %s", worker, code, errs)
		}
	}
	// What it says can be done.
	for _, args := range []string{"pool set shop --workers 20-63", "next --pool shop --worker 20", "pool set shop --workers 20-127", "next --pool shop --worker 127"} {
		if _, errs, code := called(t, strings.Fields(args)...); code != 0 {
			t.Errorf("%s: %s", args, errs)
		}
	}
	defer func(real func() (string, error)) { hostname = real }(hostname)
	hostname = func() (string, error) { return "web-5000", nil }
	if _, errs, code := called(t, "next", "--pool", "mail", "--worker", "hostname"); code != ui.ExitUsage || !strings.Contains(errs, "take one that it has: its layout has no worker above 1023\n") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
