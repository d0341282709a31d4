package main

import (
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

// After a Redis that kept nothing on disk was killed and started again, its counters may lack
// their last numbers, and next refuses to draw. The doctor says so of each counter, with the
// cure that next gives.
func TestDoctorCountersStandStill(t *testing.T) {
	emptyHome(t)
	server := testserver.Redis(t)
	t.Setenv("FIRN_STORE", server.URL())
	firn := func(code int, args ...string) string {
		t.Helper()
		out, errs, got := called(t, args...)
		if got != code {
			t.Errorf("firn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
		}
		return out + errs
	}
	firn(0, "series", "create", "orders", "--kind", "sequence", "--on-lossy-store", "may-repeat")
	firn(0, "series", "create", "invoice", "--pattern", "R{3}", "--on-lossy-store", "may-repeat")
	firn(0, "next", "orders", "-n", "3", "--on-lossy-store", "may-repeat")
	firn(0, "next", "invoice", "-n", "3", "--on-lossy-store", "may-repeat")
	if out := firn(0, "doctor"); strings.Contains(out, "bad ") {
		t.Error(out)
	}
	server.Kill(t)
	server.Start(t)

	out := firn(ui.ExitFound, "doctor")
	for series, next := range map[string]string{
		"series orders":  firn(ui.ExitFailed, "next", "orders", "--on-lossy-store", "may-repeat"),
		"series invoice": firn(ui.ExitFailed, "next", "invoice", "--on-lossy-store", "may-repeat"),
	} {
		at := strings.Index(out, "bad   "+series+": ")
		if at < 0 {
			t.Errorf("nothing is bad about %s:\n%s", series, out)
			continue
		}
		line, _, _ := strings.Cut(out[at:], "\n")
		hints := 0
		for text := range strings.Lines(next) {
			if cure, ok := strings.CutPrefix(strings.TrimSpace(text), "firn: hint: "); ok {
				if hints++; !strings.Contains(line, cure) {
					t.Errorf("%q is not in %q", cure, line)
				}
			}
		}
		if hints == 0 || !strings.Contains(line, "firn store recover") {
			t.Errorf("%s is not said to be recovered:\n%s%s", series, line, next)
		}
	}
	// In a firn.yaml each is said once.
	const file = "series:\n  orders: { kind: sequence, on-lossy-store: may-repeat }\n  invoice: { kind: document, pattern: 'R{3}', on-lossy-store: may-repeat }\n"
	if err := os.WriteFile("firn.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := firn(ui.ExitFound, "doctor"); strings.Count(out, "bad ") != 2 {
		t.Error(out)
	}
	firn(0, "store", "recover", "--yes", "--outage", "1s", "--numbers", "100")
	if out := firn(0, "doctor"); strings.Contains(out, "bad ") {
		t.Error(out)
	}
}
