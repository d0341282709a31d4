package testserver_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestKilledRun kills a test run whose servers are up; the next run ends them and
// removes what they had.
func TestKilledRun(t *testing.T) {
	testserver.Shared(t, testserver.Redis) // or this test is skipped, and seen to be
	testserver.Shared(t, testserver.Postgres)
	tmp := shortTemp(t)
	first := helper(t, tmp, "TestHelperServers", "")
	out, err := first.StdoutPipe()
	must(t, err)
	must(t, first.Start())
	var addrs []string
	lines := bufio.NewScanner(out)
	for len(addrs) < 2 && lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			addrs = append(addrs, addr)
		}
	}
	must(t, first.Process.Kill())
	first.Wait()
	if len(addrs) < 2 {
		t.Fatalf("two servers were to start, %d did", len(addrs))
	}
	for _, addr := range addrs {
		if !listens(addr) {
			t.Fatalf("the server at %s ended with its test: nothing is tested", addr)
		}
	}
	// One whose run goes on is nobody else's to end.
	other := helper(t, tmp, "TestHelperServers", "")
	out, err = other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	var kept string
	for lines := bufio.NewScanner(out); kept == "" && lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			kept = addr
		}
	}
	if kept == "" {
		t.Fatal("the second run has no server")
	}
	for _, addr := range addrs {
		if listens(addr) {
			t.Errorf("the server of a killed run still listens at %s", addr)
		}
	}
	third := helper(t, tmp, "TestHelperServers", "end")
	if out, err := third.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !listens(kept) {
		t.Error("the server of a run that goes on was ended")
	}
	must(t, other.Process.Kill())
	other.Wait()
	last := helper(t, tmp, "TestHelperServers", "end")
	if out, err := last.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestHelperServers is what TestKilledRun runs: it starts two servers, says where
// they are, and then ends or waits to be killed. One of them is frozen.
func TestHelperServers(t *testing.T) {
	how, ok := os.LookupEnv("FIRN_HELPER")
	if !ok {
		t.Skip("run by TestKilledRun")
	}
	for _, s := range []*testserver.Server{testserver.Redis(t), testserver.Postgres(t)} {
		fmt.Println("addr", s.Addr())
		if how != "end" {
			s.Freeze(t)
		}
	}
	if how != "end" {
		time.Sleep(time.Minute)
	}
}

// shortTemp is a directory that the servers' accounts reach, for TMPDIR.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-reap-")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// helper is this test binary again, for one test.
func helper(t *testing.T, tmp, test, how string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "FIRN_HELPER="+how)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	if how == "end" {
		cmd.Stderr = nil
	}
	return cmd
}

func listens(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}
