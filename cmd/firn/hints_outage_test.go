package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A command that makes a pool safe has to know the longest outage budget that a process had. A
// hint has the one of the command that failed, wherever it is from, or says to add it.
func TestHintsKnowTheOutage(t *testing.T) {
	const note = "add --outage if any process had an outage budget of more than 5 min"
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create other --layout js53 --new --workers 15-15")
	for _, tt := range []struct{ name, variable, file, flag, want, not string }{
		{"nobody says", "", "", "", note, "--outage 5m"},
		{"a short one", "1m", "", "", note, "--outage 1m"},
		{"a flag", "", "", " --outage 10m", " --outage 10m (ids start about 10 min later", note},
		{"a variable", "10m", "", "", " --outage 10m (ids start about 10 min later", note},
		{"firn.yaml", "", "pools: { default: { outage: 2h } }\n", "", "--outage 2h (ids start about 2h later", note},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.variable != "" {
				t.Setenv("FIRN_OUTAGE", tt.variable)
			}
			write(t, dir, "firn.yaml", tt.file)
			_, errs, code := called(t, strings.Fields("next"+tt.flag)...)
			if code == 0 || !strings.Contains(errs, tt.want) || strings.Contains(errs, tt.not) {
				t.Errorf("%s", errs)
			}
			if out, _, _ := called(t, strings.Fields("doctor --pool default"+tt.flag)...); !strings.Contains(out, tt.want) || strings.Contains(out, tt.not) {
				t.Errorf("%s", out)
			}
		})
	}
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "lost", "ids.db"))
	if _, errs, _ := called(t, "pool", "ls"); !strings.Contains(errs, "--lost --outage 2h") || strings.Contains(errs, note) {
		t.Error(errs)
	}
}
