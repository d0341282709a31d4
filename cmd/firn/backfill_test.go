package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A worker that gave ids of the past in a pool which gave it away is refused in the pool that has
// it now, with the name of the other one, and no hint says that it is new.
func TestBackfillOfAnotherPoolsWorker(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	write(t, dir, "t1", "2025-04-01\n")
	write(t, dir, "t2", "2025-04-01\n2025-04-01\n")
	mustAll(t, "pool create --new", "backfill t1 --worker 1023")
	first, _, _ := called(t, "backfill", "t2", "--worker", "1022")
	mustAll(t, "pool set --workers 0-511", "pool create heir --workers 512-1023 --new")

	for _, worker := range []string{"1023", "1022"} {
		errs := refusedWith(t, []string{"backfill", "t2", "--pool", "heir", "--worker", worker}, `in pool "default"`, "no worker of pool \"heir\" is certain to be new")
		if strings.Contains(errs, "nobody ever had") {
			t.Error(errs)
		}
	}
	errs := refusedWith(t, []string{"backfill", "t2", "--pool", "heir"}, "--worker is missing", "no worker of pool \"heir\" is certain to be new")
	if strings.Contains(errs, "nobody ever had") {
		t.Error(errs)
	}
	refusedWith(t, []string{"backfill", "t2", "--pool", "heir", "--worker", "1000"}, "may have been held", "--store none, once no row has an id of that worker")

	// The pool that gave the worker away: the same lines give the same ids, others none.
	if again, errs, code := called(t, "backfill", "t2", "--worker", "1022"); code != 0 || again != first {
		t.Errorf("exit code %d, %s in place of %s%s", code, again, first, errs)
	}
	if _, errs, code := called(t, "backfill", "t1", "--worker", "1022"); code != 2 || !strings.Contains(errs, `worker 1022 is outside pool "default"`) || !strings.Contains(errs, "nobody ever had worker 511") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := called(t, "backfill", "t1", "--worker", "511"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
