package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A variable that is FIRN_STORE mistyped names a store that firn would not use: the default file
// is not taken in its place. Where a store is named it is only warned of.
func TestMistypedStoreVariable(t *testing.T) {
	dir := emptyHome(t)
	for _, name := range []string{"FIRN_STORE_URL", "FIRN_STORES", "FIRN_STORE_DSN"} {
		os.Setenv(name, "postgres://u:s3cret@h/d")
		for _, args := range [][]string{{"next"}, {"next", "orders", "--kind", "sequence"}, {"worker", "ls"}, {"pool", "create", "--new"}, {"run", "--", "true"}, {"series", "ls"}} {
			out, errs, code := called(t, args...)
			if code != 2 || out != "" || !strings.Contains(errs, name) || !strings.Contains(errs, "hint: ") || !strings.Contains(errs, "FIRN_STORE=") || strings.Contains(errs, "s3cret") {
				t.Errorf("%s: firn %q: exit code %d: %s%s", name, args, code, out, errs)
			}
		}
		out, errs, code := called(t, "doctor")
		if code == 0 || !strings.Contains(out+errs, name) {
			t.Errorf("%s: firn doctor: exit code %d: %s%s", name, code, out, errs)
		}
		if entries, err := filepath.Glob(filepath.Join(dir, "*", "*.db")); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
		_, errs, code = called(t, "next", "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
		if code != 0 || !strings.Contains(errs, "firn: warning: firn does not read the variable "+name+"; is it FIRN_STORE?\n") {
			t.Errorf("%s: with --store: exit code %d: %s", name, code, errs)
		}
		os.Unsetenv(name)
	}
	t.Setenv("FIRN_STORE_SERVICE_HOST", "10.0.0.1") // Kubernetes has a service of that name
	t.Setenv("FIRN_STORE_PORT_5432_TCP_ADDR", "10.0.0.1")
	if _, errs, code := called(t, "next"); code != 0 || strings.Contains(errs, "warning") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
