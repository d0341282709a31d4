// Package clienttest is for the tests of the clients in other languages: it finds and builds their programs, serves
// pages to them, and checks the ids that they print.
//
// A program of a test takes ids and prints them, a line an id. Ids of one thread increase; an empty line, or a new
// process, begins another thread. With the arguments "until PATH" it opens the page with a long wait and takes ids until its
// standard input ends: 10 at a time, then it sleeps 2 ms. With "runs PATH BATCH SINGLES PAUSE" it prints a line FIRST COUNT for
// each run of consecutive ids, all of which increase: it takes BATCH at a time, then SINGLES alone, and sleeps PAUSE ms.
package clienttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// Main is for TestMain of a package that uses [Serve], [Go] or [Storm]: their processes are the program of the test
// again. It does not return.
func Main(m *testing.M) {
	switch role, path, _ := strings.Cut(os.Getenv(variable), " "); role {
	case "agent":
		os.Exit(agent(path))
	case "until":
		os.Exit(until(path))
	case "once":
		os.Exit(once(path))
	case "runs":
		os.Exit(runs(os.Args[1:]))
	}
	testserver.Main(m, func() error { return os.RemoveAll(shared.dir) })
}

var shared struct {
	sync.Mutex
	dir    string
	filled map[string]bool // by name: whether fill came to its end
}

// Shared returns a directory that all tests of a package have in common, by a name. The first call fills it.
func Shared(t *testing.T, name string, fill func(dir string)) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.dir == "" {
		dir, err := os.MkdirTemp("", "firn-client-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir, shared.filled = dir, map[string]bool{}
	}
	dir := filepath.Join(shared.dir, name)
	filled, known := shared.filled[name]
	if known && !filled {
		t.Fatalf("an earlier test could not build %s", name)
	}
	if !known {
		shared.filled[name] = false
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		fill(dir)
		shared.filled[name] = true
	}
	return dir
}

// Program returns the path of an installed program. Without it the test is skipped, and fails where CI runs.
func Program(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, fmt.Sprintf("there is no %s (apt-get install %s)", name, debian))
	}
	return path
}

// Missing skips the test because the machine lacks something. Where CI runs it fails.
func Missing(t *testing.T, what string) {
	t.Helper()
	text := "NOT TESTED: " + what
	if os.Getenv("FIRN_CI") != "" {
		t.Fatal(text)
	}
	fmt.Fprintln(os.Stderr, text)
	t.SkipNow()
}

// Output runs a program in a directory and returns what it prints. The test fails if the program does.
func Output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// Compile builds a program in C from a source with a firn.h of the directory include, and returns its path.
func Compile(t *testing.T, compiler, source, include string, flags ...string) string {
	t.Helper()
	cc := Program(t, compiler, compiler)
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-I", include, "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program}, flags...)
	Output(t, ".", cc, append(args, source)...)
	return program
}

// Root returns the directory of the repository.
func Root(t *testing.T) string {
	t.Helper()
	// A test runs in the directory of its package.
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("the test does not run in the repository: ", err)
	return ""
}

// Dir returns a new directory below /dev/shm, which is in memory. If the host has no /dev/shm, the directory is on a disk.
func Dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/dev/shm", "firn-client-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// Copy copies files into a directory, each with its own mode.
func Copy(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Samples returns the texts between fences ``` of a language in a file of Markdown.
func Samples(t *testing.T, file, language string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var samples []string
	for i, part := range strings.Split(string(b), "```") {
		if rest, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			samples = append(samples, rest)
		}
	}
	if len(samples) == 0 {
		t.Fatalf("%s has no sample in %s", file, language)
	}
	return slices.Clip(samples)
}
