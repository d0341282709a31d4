// Package model has the models in docs/model searched by spin, a model checker: all states that a
// protocol can get into, within bounds, whoever does what when.
//
// The table in its tests says which searches there are and what each has to find: a
// protocol as it is built nothing, and one that lacks a rule what that rule is there
// for. The short ones are run with the tests, all of them by "make model".
package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Checker has what a search needs.
type Checker struct {
	Spin, CC string // paths of spin, and of a C compiler
	QuickCC  string // of one that takes no time, for searches that take none
	Dir      string // where the models are
	Memory   int    // MB that one search may take
	Depth    int    // steps of the longest way that is followed; where there is a longer one the search is not complete
}

// A Search is one model, with a protocol that is whole or lacks a rule.
type Search struct {
	Model  string // its file, without .pml
	Name   string // what is searched, for people
	Define string // as in "MUT_BLIND PUTS=4": what the model is told
	Finds  string // text of the assertion that has to fail; empty: none may
	Long   bool   // takes minutes, or more than 1 GB
}

// Flags are the options of spin that stand for Define.
func (s Search) Flags() []string {
	var flags []string
	for d := range strings.FieldsSeq(s.Define) {
		flags = append(flags, "-D"+d)
	}
	return flags
}

// A Result is what a search came to.
type Result struct {
	States   int64 // that were told apart
	Depth    int   // steps of the longest way
	Memory   int   // MB
	Complete bool  // there are no other states
	Found    string
	Story    string // how it came to what was found, a line a step
	Took     time.Duration
}

// Judge says what is wrong with what a search came to: a protocol that is whole has to be
// searched to its end with nothing found, and one that lacks a rule to be found out.
func (s Search) Judge(r Result) error {
	switch {
	case s.Finds != "" && !strings.Contains(r.Found, s.Finds):
		return fmt.Errorf("found %q, want %q: the rule is not needed, or the model does not see it\n%s", r.Found, s.Finds, r.Story)
	case s.Finds == "" && r.Found != "":
		return fmt.Errorf("found %q:\n%s", r.Found, r.Story)
	case s.Finds == "" && !r.Complete:
		return errors.New("not all states were searched: the depth or the memory does not suffice")
	}
	return nil
}

// Run searches. An error says that the search could not be made.
func (c Checker) Run(ctx context.Context, s Search) (Result, error) {
	dir, err := os.MkdirTemp("", "firn-model")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	source, err := filepath.Abs(filepath.Join(c.Dir, s.Model+".pml"))
	if err != nil {
		return Result{}, err
	}
	begun := time.Now()
	if _, err := run(ctx, dir, c.Spin, append(s.Flags(), "-a", source)...); err != nil {
		return Result{}, err
	}
	cc, args := c.compile(s)
	if _, err := run(ctx, dir, cc, args...); err != nil {
		return Result{}, err
	}
	out, err := run(ctx, dir, "./pan", "-n", "-E", "-m"+strconv.Itoa(c.Depth), s.hash())
	if err != nil {
		return Result{}, err
	}
	r, err := read(out)
	if err != nil {
		return Result{}, fmt.Errorf("model: %s %s: %w", s.Model, s.Define, err)
	}
	if r.Found != "" {
		if err := os.Rename(filepath.Join(dir, s.Model+".pml.trail"), filepath.Join(dir, "trail")); err != nil {
			return r, err
		}
		story, err := run(ctx, dir, c.Spin, append(s.Flags(), "-T", "-k", "trail", source)...)
		if err != nil {
			return r, err
		}
		r.Story = tell(story)
	}
	r.Took = time.Since(begun)
	return r, nil
}

// compile is the compiler and its arguments. What is found soon is not worth the time
// to compile it well, and only what is large is worth the time to be kept small.
func (c Checker) compile(s Search) (cc string, args []string) {
	args = []string{"-w", "-DSAFETY", "-DMEMLIM=" + strconv.Itoa(c.Memory), "-o", "pan", "pan.c"}
	if s.Long {
		args = append(args, "-DCOLLAPSE")
	}
	switch {
	case s.Long:
		return c.CC, append(args, "-O2")
	case s.Finds == "":
		return c.CC, append(args, "-O1")
	}
	return c.QuickCC, args
}

// hash is how many places the table of states has, as a power of 2.
func (s Search) hash() string {
	if s.Long {
		return "-w26"
	}
	return "-w22"
}

// run runs a program and returns what it printed.
func run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("model: %s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

var (
	states    = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)
	depth     = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	memory    = regexp.MustCompile(`(?m)^ *([0-9.]+)\s+total actual memory usage`)
	violation = regexp.MustCompile(`(?m)^pan:\d+: assertion violated \(?(.*?)\)? \(at depth \d+\)$`)
)

// read reads what pan says of its search.
func read(out string) (Result, error) {
	var r Result
	s, d, m := states.FindStringSubmatch(out), depth.FindStringSubmatch(out), memory.FindStringSubmatch(out)
	if s == nil || d == nil || m == nil {
		return r, errors.New("no result: " + out)
	}
	n, err := strconv.ParseFloat(s[1], 64)
	if err != nil {
		return r, err
	}
	r.States = int64(n)
	if n, err = strconv.ParseFloat(m[1], 64); err != nil {
		return r, err
	}
	r.Memory = int(n)
	if r.Depth, err = strconv.Atoi(d[1]); err != nil {
		return r, err
	}
	cut := strings.Contains(out, "Search not completed") || strings.Contains(out, "max search depth too small")
	r.Complete = d[2] == "0" && !cut
	switch v := violation.FindStringSubmatch(out); {
	case v != nil:
		r.Found = v[1]
	case d[2] != "0":
		return r, errors.New("it found what is no assertion: " + out)
	}
	return r, nil
}

// tell is what a model printed on the way to what was found.
func tell(out string) string {
	var story []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "spin: trail ends") || strings.HasPrefix(line, "spin: ") && strings.Contains(line, "Error: assertion violated") {
			break
		}
		if line = strings.TrimSpace(line); line != "" {
			story = append(story, line)
		}
	}
	return strings.Join(story, "\n")
}
