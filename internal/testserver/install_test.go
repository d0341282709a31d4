//go:build linux

package testserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestForbidServices looks at the policy that Debian's packages ask, while they
// are installed and after.
func TestForbidServices(t *testing.T) {
	for _, tt := range []struct{ name, before string }{
		{"none", ""},
		{"allows", "#!/bin/sh\nexit 0\n"},
		{"forbids", "#!/bin/sh\n# mine\nexit 101\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "policy-rc.d")
			if tt.before != "" {
				if err := os.WriteFile(path, []byte(tt.before), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			restore, err := forbidServices(path)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "redis-server", "start")
			if cmd.Run(); cmd.ProcessState.ExitCode() != 101 {
				t.Errorf("exit code %d while packages are installed, want 101", cmd.ProcessState.ExitCode())
			}
			restore()
			after, err := os.ReadFile(path)
			if string(after) != tt.before || (tt.before == "") != os.IsNotExist(err) {
				t.Errorf("afterwards %q, %v, want %q", after, err, tt.before)
			}
			if tt.before != "" {
				if info, _ := os.Stat(path); info.Mode().Perm() != 0o750 {
					t.Errorf("afterwards its mode is %v", info.Mode())
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.*.*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
