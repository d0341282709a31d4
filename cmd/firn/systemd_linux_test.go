package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The units of examples/systemd start a command that there is, and systemd reads them, where this host has it.
func TestSystemdUnits(t *testing.T) {
	units, err := filepath.Glob("../../examples/systemd/*.service")
	if err != nil || len(units) < 2 {
		t.Fatal(units, err)
	}
	firn, err := exec.LookPath("firn") // TestMain has put it there
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range units {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "\nExecStart=/usr/local/bin/firn ")
		line, _, _ := strings.Cut(rest, "\n")
		cmd, args, err := newRoot().Find(strings.Fields(line))
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil && cmd.Args != nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil || line == "" {
			t.Errorf("%s: ExecStart %q: %v", path, line, err)
		}
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			continue
		}
		unit := filepath.Join(t.TempDir(), filepath.Base(path))
		// A systemd before 253 does not know notify-reload: the unit says what to write instead.
		text := strings.NewReplacer("/usr/local/bin/firn", firn, "Type=notify-reload", "Type=notify").Replace(string(b))
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput()
		if err != nil || strings.Contains(string(out), unit) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
