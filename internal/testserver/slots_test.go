package testserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestSlots has two test binaries run at once, of four that are started.
func TestSlots(t *testing.T) {
	env, remove, err := testserver.Slots(2)
	must(t, err)
	t.Cleanup(func() { must(t, remove()) })
	says := filepath.Join(t.TempDir(), "says")
	must(t, os.WriteFile(says, nil, 0o600))
	var all []*exec.Cmd
	for range 4 {
		cmd := helper(t, os.TempDir(), "TestHelperSlot", says, env)
		must(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	said, err := os.ReadFile(says)
	must(t, err)
	running, most := 0, 0
	for line := range strings.Lines(string(said)) {
		if line == "begins\n" {
			running++
		} else {
			running--
		}
		most = max(most, running)
	}
	if n := strings.Count(string(said), "begins"); n != 4 || running != 0 || most > 2 {
		t.Errorf("%d ran, %d at once at most:\n%s", n, most, said)
	}
}

// TestHelperSlot is what TestSlots runs.
func TestHelperSlot(t *testing.T) {
	says, ok := os.LookupEnv("FIRN_HELPER")
	if !ok {
		t.Skip("run by TestSlots")
	}
	f, err := os.OpenFile(says, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	write := func(what string) { _, err := f.WriteString(what); must(t, err) }
	write("begins\n")
	for range 3 {
		runtime.GC() // closes files that nothing refers to
		time.Sleep(100 * time.Millisecond)
	}
	write("ends\n")
}
