package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// installed is the package that has the SQL of shards.
const installed = "shard/install"

// longest is for how long the schedules of a mutant run: in one that spins no time passes.
const longest = 20 * time.Minute

// failure is the line with which the simulation says what went wrong, and in which schedule.
var failure = regexp.MustCompile(`(?m)^seed (\d+): ([^:\n]+)`)

// A Search looks for what mutants do wrong, in the repository at a root: in at most so many schedules of
// the simulation, or with their tests.
type Search struct {
	root string
	n    int
	dir  string // of programs

	// rules builds the tests of shard/install, which take changed SQL without being built again.
	rules func() (program string, err error)
}

// NewSearch returns a search. Close it.
func NewSearch(ctx context.Context, root string, n int) (*Search, error) {
	dir, err := os.MkdirTemp("", "firn-mutants-")
	if err != nil {
		return nil, err
	}
	return &Search{root, n, dir, sync.OnceValues(func() (string, error) {
		program := filepath.Join(dir, "rules.test")
		build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./"+installed)
		build.Dir = root
		out, err := build.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("the tests of %s: %w\n%s", installed, err, out)
		}
		return program, err
	})}, nil
}

// Close removes what the search has built.
func (s *Search) Close() error { return os.RemoveAll(s.dir) }

// Find says where a mutant was found; "" means nowhere. Several may be looked for at once.
func (s *Search) Find(ctx context.Context, m Mutant) (found string, err error) {
	dir, err := os.MkdirTemp(s.dir, "mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.Overlay(s.root, dir)
	if err != nil {
		return "", err
	}
	switch {
	case m.Tests == "":
		return m.simulate(ctx, s.root, overlay, filepath.Join(dir, "simulation"), s.n)
	case path.Dir(m.File) == installed && m.Package == "./"+installed && path.Ext(m.File) == ".sql":
		program, err := s.rules()
		if err != nil {
			return "", err
		}
		test := exec.CommandContext(ctx, program, "-test.timeout=5m", "-test.failfast", "-test.run", m.Tests)
		test.Dir = filepath.Join(s.root, installed)
		test.Env = append(os.Environ(), "FIRN_TEST_SQL="+filepath.Join(dir, installed))
		return m.test(test)
	}
	test := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-timeout=5m", "-failfast", "-vet=off", "-ldflags=-s -w", "-run", m.Tests, m.Package)
	test.Dir = s.root
	return m.test(test)
}

func (m Mutant) simulate(ctx context.Context, root, overlay, program string, n int) (string, error) {
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./internal/sim/run")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: it does not build: %w\n%s", m.Name, err, out)
	}
	ctx, stop := context.WithTimeoutCause(ctx, longest, fmt.Errorf("its schedules do not end within %s", longest))
	defer stop()
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
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %w", m.Name, context.Cause(ctx))
	}
	return "", fmt.Errorf("%s: %w\n%s", m.Name, err, out)
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

	// refusal is what firn's own functions say; all else that keeps the tests from beginning is no find.
	refusal = regexp.MustCompile(`SQLSTATE ID\d{3}`)

	// senseless are SQLSTATEs of a function that is no SQL, or calls what does not exist; and of a server
	// that ends a connection.
	senseless = regexp.MustCompile(`says "42703"|(SQLSTATE |says ")(42(601|883|804|P13)|57P0[1-3])`)
)

// test runs the tests that are to find the mutant. One whose SQL cannot be loaded is no mutant: that
// every test fails then shows nothing.
func (m Mutant) test(test *exec.Cmd) (string, error) {
	out, err := test.CombinedOutput()
	if err == nil {
		return "", nil
	}
	failed := deepest(out)
	switch {
	case failed == "":
		return "", fmt.Errorf("%s: %w\n%s", m.Name, err, out)
	case filepath.Ext(m.File) == ".sql" && senseless.Match(out):
		return "", fmt.Errorf("%s: its SQL cannot be loaded or run\n%s", m.Name, out)
	case m.Tests == stepTests && !strings.Contains(failed, "/") && !refusal.Match(out):
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
