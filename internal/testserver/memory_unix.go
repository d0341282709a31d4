//go:build linux || darwin

package testserver

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetMemory removes the shared memory of a PostgreSQL server in home that was killed,
// which its next start would have done: the seventh line of its postmaster.pid
// names it. A clean stop removes both.
func forgetMemory(home string) {
	b, err := os.ReadFile(filepath.Join(home, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 {
		return
	}
	if f := strings.Fields(lines[6]); len(f) == 2 {
		if id, err := strconv.Atoi(f[1]); err == nil {
			unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
	}
}
