package testserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestMissing looks for a server that is not there: its test is skipped and
// counted, or fails where servers are required.
func TestMissing(t *testing.T) {
	skips := filepath.Join(t.TempDir(), "skips")
	bare := []string{"PATH=" + t.TempDir(), "FIRN_INSTALL_SERVERS=0", "FIRN_TEST_SKIPS=" + skips, "FIRN_REQUIRE_SERVERS="}

	out, err := helper(t, os.TempDir(), "TestHelperMissing", "end", bare...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- SKIP: TestHelperMissing/one") {
		t.Errorf("a test without its server: %v, want it skipped\n%s", err, out)
	}
	if !strings.Contains(string(out), "FIRN_INSTALL_SERVERS=0") || !strings.Contains(string(out), "java") {
		t.Errorf("it does not say why, and what is missing:\n%s", out)
	}
	got, err := testserver.Count(skips)
	if want := "skipped: 2 tests for want of zookeeper\n"; err != nil || got != want {
		t.Errorf("count %q, %v, want %q", got, err, want)
	}

	out, err = helper(t, os.TempDir(), "TestHelperMissing", "end", append(bare, "FIRN_REQUIRE_SERVERS=1")...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestHelperMissing/one") {
		t.Errorf("a test without its server, which is required: %v, want it failed\n%s", err, out)
	}
}

// TestLong: a long test is skipped and counted, unless it is asked for.
func TestLong(t *testing.T) {
	skips := filepath.Join(t.TempDir(), "skips")
	env := []string{"FIRN_TEST_SKIPS=" + skips, "FIRN_LONG="}
	out, err := helper(t, os.TempDir(), "TestHelperLong", "end", env...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- SKIP: TestHelperLong") || !strings.Contains(string(out), "make full runs it") {
		t.Errorf("%v, want the test skipped and the reason\n%s", err, out)
	}
	if got, err := testserver.Count(skips); err != nil || got != "left to make full: 1 test\n" {
		t.Errorf("count %q, %v", got, err)
	}
	out, err = helper(t, os.TempDir(), "TestHelperLong", "end", append(env, "FIRN_LONG=1")...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHelperLong") {
		t.Errorf("%v, want the test run\n%s", err, out)
	}
}

// TestHelperLong is what TestLong runs.
func TestHelperLong(t *testing.T) {
	if _, ok := os.LookupEnv("FIRN_HELPER"); !ok {
		t.Skip("run by TestLong")
	}
	testserver.OnlyLong(t)
}

// TestInstallFails has apt-get fail. The tests say why, and do not try again; who
// asks for an installation has it tried.
func TestInstallFails(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root installs anything")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte("#!/bin/sh\necho x >> "+dir+"/calls\necho no network\nexit 100\n"), 0o755))
	env := []string{"PATH=" + dir, "HOME=" + dir, "XDG_CACHE_HOME=", "FIRN_INSTALL_SERVERS=", "FIRN_TEST_SKIPS=", "FIRN_REQUIRE_SERVERS="}
	for range 2 {
		out, err := helper(t, os.TempDir(), "TestHelperMissing", "end", env...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "no network") || !strings.Contains(string(out), "--- SKIP: TestHelperMissing/two") {
			t.Errorf("%v, want the tests skipped and the reason\n%s", err, out)
		}
	}
	calls := func() int { b, _ := os.ReadFile(filepath.Join(dir, "calls")); return strings.Count(string(b), "x") }
	if n := calls(); n != 1 {
		t.Errorf("apt-get was called %d times by tests, want once", n)
	}
	if out, err := helper(t, os.TempDir(), "TestHelperInstall", "end", env...).CombinedOutput(); err != nil || !strings.Contains(string(out), "(missing: ") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := calls(); n != 2 {
		t.Errorf("apt-get was called %d times with an installation, want twice", n)
	}
}

func TestHelperInstall(t *testing.T) {
	if _, ok := os.LookupEnv("FIRN_HELPER"); !ok {
		t.Skip("run by TestInstallFails")
	}
	t.Log(testserver.Install())
}

// TestHelperMissing is what TestMissing runs. The programs of ZooKeeper are those
// that only the PATH finds.
func TestHelperMissing(t *testing.T) {
	if _, ok := os.LookupEnv("FIRN_HELPER"); !ok {
		t.Skip("run by TestMissing")
	}
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) { testserver.ZooKeeper(t) })
	}
}

// TestElsewhere has tests use a server that runs already, and leave it alone.
func TestElsewhere(t *testing.T) {
	s := testserver.Redis(t)
	skips := filepath.Join(t.TempDir(), "skips")
	env := []string{"FIRN_TEST_REDIS_URL=" + s.URL() + "/3", "FIRN_TEST_SKIPS=" + skips, "FIRN_REQUIRE_SERVERS="}
	out, err := helper(t, os.TempDir(), "TestHelperElsewhere", "end", env...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "at "+s.Addr()+" "+s.URL()+"/3\n") {
		t.Errorf("it does not use %s:\n%s", s.URL(), out)
	}
	if !listens(s.Addr()) {
		t.Error("it was killed")
	}
	got, err := testserver.Count(skips)
	if want := "skipped: 1 test for want of redis\n"; err != nil || got != want {
		t.Errorf("count %q, %v, want %q", got, err, want)
	}
}

func TestHelperElsewhere(t *testing.T) {
	if _, ok := os.LookupEnv("FIRN_HELPER"); !ok {
		t.Skip("run by TestElsewhere")
	}
	s := testserver.Shared(t, testserver.Redis)
	println("at", s.Addr(), s.URL())
	s.Kill(t)
	t.Error("Kill came back")
}

func TestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips")
	if _, err := testserver.Count(path); err == nil {
		t.Error("no error for a file that is not there")
	}
	for _, tt := range []struct{ notes, want string }{
		{"", ""},
		{"redis\ta\tT\nredis\ta\tT\nredis\tb\tT\netcd\ta\tT\n", "skipped: 2 tests for want of redis\nskipped: 1 test for want of etcd\n"},
	} {
		must(t, os.WriteFile(path, []byte(tt.notes), 0o600))
		if got, err := testserver.Count(path); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.notes, got, err, tt.want)
		}
	}
}
