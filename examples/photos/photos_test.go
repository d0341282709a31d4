//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestStory(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), t, &out, true); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var captions []string
	for _, m := range regexp.MustCompile(`(?m)^  \d+  [\d:.]+  \w+: (\w+) `).FindAllStringSubmatch(out.String(), -1) {
		captions = append(captions, m[1])
	}
	if got, want := strings.Join(captions, " "), "lake moraine glacier crevasse ice firn snow"; got != want {
		t.Errorf("the feed is %s, want %s", got, want)
	}
	if m := regexp.MustCompile(`(?m)^  (\d+) photos were shared`).FindStringSubmatch(out.String()); m == nil || m[1] == "0" {
		t.Errorf("none were shared while a server was restarted:\n%s", &out)
	}
	grown := regexp.MustCompile(`(?m)^  ([1-9]\d*) shards moved\n  ([1-9]\d*) photos were shared, the slowest within \S+; 0 were broken off, of 0 nobody knows$`)
	if !grown.MatchString(out.String()) {
		t.Errorf("while shards moved:\n%s", &out)
	}
}

// TestInterrupted: Ctrl-C leaves no server behind, and none of their files.
func TestInterrupted(t *testing.T) {
	testserver.Shared(t, testserver.Postgres) // or the test is skipped
	dir, err := os.MkdirTemp("", "photos")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// The servers' account has to get at its files.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "photos")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := exec.Command(program)
	p.Env = append(os.Environ(), "TMPDIR="+dir)
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	r := bufio.NewReader(stdout)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "firn-testserver-*")); len(left) != 2 {
		t.Errorf("while it runs there are %q", left)
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.WriteTo(&bytes.Buffer{})
	p.Wait()
	if code := p.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "firn-testserver-*")); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}
