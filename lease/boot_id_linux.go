package lease

import (
	"os"
	"strings"
)

// bootID names this run of the system: random(4). Containers have their host's.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
