package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store/sqlite"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/internal/leash"
	"github.com/firn-id/firn/internal/testserver"
)

// Under the race detector a process sleeps for a second when it ends, unless
// told not to. The tests start some two hundred.
const raceOptions = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	leash.Become()
	os.Setenv("GORACE", raceOptions)
	testscript.Main(sharing{m}, map[string]func(){"firn": func() { dropUnset(); main() }})
}

// isUnset is the value of a variable that a test takes out of the environment of the
// firn that it runs: a script cannot, and an empty variable is not the same.
const isUnset = "(unset by the test)"

func dropUnset() {
	for _, one := range os.Environ() {
		if name, ok := strings.CutSuffix(one, "="+isUnset); ok {
			os.Unsetenv(name)
		}
	}
}

// unset is "unset NAME...".
func unset(ts *testscript.TestScript, neg bool, names []string) {
	if neg || len(names) == 0 {
		ts.Fatalf("usage: unset NAME...")
	}
	for _, name := range names {
		ts.Setenv(name, isUnset)
	}
}

// sharing runs tests that share servers.
type sharing struct{ m *testing.M }

func (s sharing) Run() int {
	// Most of these tests wait most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	return testserver.Run(s.m)
}

// TestScripts runs testdata/*.txt: each command, its errors and exit codes. A
// script starts in an empty home of its own; $ENDING is a layout that ends soon.
func TestScripts(t *testing.T) {
	container := inContainer(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("KUBERNETES_SERVICE_HOST", "")
			e.Setenv("GORACE", raceOptions)
			// 39 bits of milliseconds last 17 years.
			begun := time.Now().AddDate(-15, 0, 0).UTC().Format(time.RFC3339)
			e.Setenv("ENDING", "time:39@1ms,worker:10,seq:12;epoch="+begun)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			// Where the tests themselves run in a container there is no
			// implicit store to try.
			return cond == "container" && container, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "unset": unset},
	})
}

// inContainer reports whether there is no default store below the directory of
// temporary files.
func inContainer(t *testing.T) bool {
	t.Helper()
	old, set := os.LookupEnv("HOME")
	os.Setenv("HOME", os.TempDir())
	_, err := sqlite.DefaultPath()
	if os.Setenv("HOME", old); !set {
		os.Unsetenv("HOME")
	}
	return err != nil
}

// exits is "exits CODE COMMAND ARGS...": the command must end with that code,
// which "! exec" does not say.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		code = ended.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// write writes a file and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
