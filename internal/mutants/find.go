package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// failure is the line with which the simulation says what went wrong, and in which schedule.
var failure = regexp.MustCompile(`(?m)^seed (\d+): ([^:\n]+)`)

// Find looks for what a mutant does wrong, in the repository at root: in at most n schedules
// of the simulation, or with its tests. It says where it was found; "" means nowhere.
func (m Mutant) Find(ctx context.Context, root string, n int) (found string, err error) {
	dir, err := os.MkdirTemp("", "firn-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.Overlay(root, dir)
	if err != nil {
		return "", err
	}
	if m.Tests != "" {
		return m.test(ctx, root, overlay)
	}
	return m.simulate(ctx, root, overlay, filepath.Join(dir, "simulation"), n)
}

func (m Mutant) simulate(ctx context.Context, root, overlay, program string, n int) (string, error) {
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./internal/sim/run")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: it does not build: %w\n%s", m.Name, err, out)
	}
	look := exec.CommandContext(ctx, program, "-n", strconv.Itoa(n), "-like", m.Like)
	look.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := look.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if m := failure.FindSubmatch(out); m != nil {
		return fmt.Sprintf("schedule %s: %s", m[1], m[2]), nil
	}
	if strings.Contains(string(out), "panic:") {
		return "it panics", nil
	}
	return "", fmt.Errorf("%s: %w\n%s", m.Name, err, out)
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

	// unloadable are SQLSTATEs of a function that is no SQL, or names what does not exist.
	unloadable = regexp.MustCompile(`SQLSTATE 42(601|703|883|804|P13)|says "42(601|703|883|804|P13)"`)
)

// test runs the tests that are to find the mutant. One whose SQL cannot be loaded is no mutant: that
// every test fails then shows nothing.
func (m Mutant) test(ctx context.Context, root, overlay string) (string, error) {
	test := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-run", m.Tests, m.Package)
	test.Dir = root
	out, err := test.CombinedOutput()
	if err == nil {
		return "", nil
	}
	failed := deepest(out)
	switch {
	case failed == "":
		return "", fmt.Errorf("%s: %w\n%s", m.Name, err, out)
	case filepath.Ext(m.File) == ".sql" && unloadable.Match(out):
		return "", fmt.Errorf("%s: its SQL cannot be loaded, or does not run\n%s", m.Name, out)
	case m.Tests == stepTests && !strings.Contains(failed, "/"):
		return "", fmt.Errorf("%s: no rule of %s is reached\n%s", m.Name, failed, out)
	}
	return failed, nil
}

// deepest returns the first of the tests that failed which has the most names; "" where none failed.
func deepest(out []byte) (name string) {
	for _, m := range failedTest.FindAllSubmatch(out, -1) {
		if one := string(m[1]); name == "" || strings.Count(one, "/") > strings.Count(name, "/") {
			name = one
		}
	}
	return name
}
