package figures

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A Machine is where and when something was measured.
type Machine struct {
	Date string `json:"date"`
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
	Load string `json:"load"` // of the last minute, when the measurement began
}

// ThisMachine is the one that this runs on, now.
func ThisMachine() Machine {
	m := Machine{
		Date: time.Now().UTC().Format(time.DateTime), Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: "unknown", CPUs: runtime.NumCPU(), Load: "unknown",
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

func (m Machine) String() string {
	return fmt.Sprintf("%s UTC, %s %s/%s, %d x %s, load %s", m.Date, m.Go, m.OS, m.Arch, m.CPUs, m.CPU, m.Load)
}
