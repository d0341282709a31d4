//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/torture/siege"
)

// command builds the command, and returns what runs it with all its files below a
// directory.
func command(t *testing.T) (run func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer), dir string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "torture")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir = t.TempDir()
	return func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		var out, errs bytes.Buffer
		cmd := exec.Command(path, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		return cmd, &out, &errs
	}, dir
}

// A program that repeats ids is found out, with what is needed to look for why. One that
// is interrupted reports what it did, and leaves nothing behind.
func TestCommand(t *testing.T) {
	run, dir := command(t)
	cmd, out, _ := run("-stores", "sqlite", "-for", "2m", "-seed", "7", "-broken", "twice", "--json")
	err := cmd.Run()
	var report struct {
		Stores   []siege.Outcome
		Together siege.Outcome
	}
	if jerr := json.Unmarshal(out.Bytes(), &report); jerr != nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	o := &report.Together
	if code := cmd.ProcessState.ExitCode(); code != exitFound || o.Repeats == 0 || o.IDs == 0 || o.Seed != 7 || len(report.Stores) != 1 {
		t.Errorf("exit code %d, %d repeats of %d ids with seed %d", code, o.Repeats, o.IDs, o.Seed)
	}
	if all := strings.Join(report.Stores[0].Problems, "\n"); !strings.Contains(all, "was issued by p") {
		t.Errorf("no problem names an id and two who issued it: %s", all)
	}

	cmd, out, errs := run("-stores", "sqlite", "-for", "10m")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ledgers, err := filepath.Glob(filepath.Join(dir, "firn-torture-*", "p*", "ids-0-0"))
		if len(ledgers) >= 6 || err != nil || time.Since(begun) > 2*time.Minute {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "repeats") {
		t.Errorf("interrupted: %v\n%s%s", err, out, errs)
	}
	left, err := os.ReadDir(dir)
	for _, e := range left {
		t.Errorf("%s was left behind, %v", e.Name(), err)
	}
	if who, err := exec.Command("pgrep", "-f", dir).Output(); len(who) > 0 {
		t.Errorf("processes %s run on, %v", who, err)
	}
}

func TestUsage(t *testing.T) {
	run, _ := command(t)
	for _, args := range []string{
		"-stores mongodb", "-workers 1", "-for 0s", "-broken badly", "-nothing", "sqlite",
	} {
		cmd, _, errs := run(strings.Fields(args)...)
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || errs.Len() == 0 {
			t.Errorf("%s: %v\n%s", args, err, errs)
		}
	}
	cmd, _, errs := run("-help")
	if err := cmd.Run(); err != nil || !strings.Contains(errs.String(), "-stores") {
		t.Errorf("-help: %v\n%s", err, errs)
	}
	if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Error("-help: it was killed")
	}
}
