package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// After a recovery, what hints say to type creates a series, and the listings show how far each
// counter may have come.
func TestAfterARecovery(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "series create orders --kind sequence", "series create invoice --pattern I-{4}", "next orders -n 5", "next invoice -n 3", "pool create --new")
	out, errs, code := called(t, "store", "recover", "--numbers", "100", "--yes", "--outage", "1s")
	if code != 0 || !strings.Contains(errs, "document invoice was last granted numbers, up to 3 (I-0003)") ||
		!strings.Contains(out, "document invoice: 100 numbers are left out; it continues above I-0103") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if !strings.Contains(errs, "for so long a process may make ids while it does not reach the store") {
		t.Errorf("it does not say what the wait is for: %s", errs)
	}
	if out, _, _ := called(t, "series", "ls"); !strings.Contains(out, "I-0103") || strings.Contains(out, "I-0003") {
		t.Errorf("series ls shows a text that may not be the last: %s", out)
	}
	if out, _, _ := called(t, "next", "invoice"); strings.TrimSpace(out) != "I-0104" {
		t.Errorf("next: %s", out)
	}
	follows(t, "next first --kind sequence", "no series", "series create first --kind sequence --new")
	follows(t, "next second --pattern S{3}", "no series", "series create second --pattern S{3} --new")
	follows(t, "series set third --cache 5", "no series", "series create third --kind sequence --new")
	_, errs, _ = called(t, "next", "--wait", "1ms")
	if !strings.Contains(errs, "for its outage budget a process makes ids while it does not reach the store") {
		t.Error(errs)
	}
}

// Numbers to leave out are refused where no series has any, and nothing is done.
func TestRecoverNumbersOfNoSeries(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create --new")
	_, errs, code := called(t, "store", "recover", "--numbers", "100", "--yes")
	if code != ui.ExitUsage || !strings.Contains(errs, "--numbers: the store has no sequence and no document, so no number would be left out; nothing was done") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	mustAll(t, "store recover --yes --outage 1s")
	_, errs, _ = called(t, "store", "recover", "--yes", "--json", "--outage", "1s")
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
