package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// A config to check that is not there gets a hint, as one that a command should read.
func TestConfigCheckOfNoFile(t *testing.T) {
	emptyHome(t)
	_, errs, code := called(t, "config", "check", "nope.yaml")
	if code != ui.ExitUsage || !strings.Contains(errs, "there is no config nope.yaml") || !strings.Contains(errs, "firn: hint: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
