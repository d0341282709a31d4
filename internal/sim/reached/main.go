// Command reached runs the simulation with a counter in each statement of the machines and their
// driver, and lists the statements that no schedule reached: rules that the simulation does not prove.
//
//	go run ./internal/sim/reached -n 100000
//
// It ends with 1 when it finds such a statement that elsewhere.go does not list, or one that is listed
// and was reached.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// simulated are the packages whose statements are counted.
var simulated = []string{
	"internal/term", "internal/block", "internal/holder", "internal/grantfile", "internal/opening", "internal/supply", "internal/dated",
}

const (
	module  = "github.com/firn-id/firn/"
	program = "./internal/sim/run"
)

func main() {
	n := flag.Int("n", 100_000, "how many `schedules` are run")
	list := flag.Bool("list", false, "print what the simulation does not reach, and what shows that it is right, and run nothing")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if *list {
		for _, e := range elsewhere {
			fmt.Printf("%s\t%s\t%s\n", e.file, e.text, e.why)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := run(ctx, *n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reached:", err)
		os.Exit(2)
	}
	if len(found) > 0 {
		fmt.Println(strings.Join(found, "\n"))
		os.Exit(1)
	}
}

// run returns what is wrong, a line each.
func run(ctx context.Context, n int) ([]string, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("not in the repository: %w", err)
	}
	profile, err := count(ctx, strings.TrimSpace(string(root)), n)
	if err != nil {
		return nil, err
	}
	all, err := readProfile(profile, strings.TrimSpace(string(root)))
	if err != nil {
		return nil, err
	}
	times := 0
	for _, b := range all {
		times += min(b.times, 1)
	}
	fmt.Printf("%d schedules reached %d of %d runs of statements in %s\n", n, times, len(all), strings.Join(simulated, ", "))
	return judge(all), nil
}

// count runs n schedules, and returns a coverage profile.
func count(ctx context.Context, root string, n int) (string, error) {
	dir, err := os.MkdirTemp("", "firn-reached-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	binary, counters, profile := filepath.Join(dir, "run"), filepath.Join(dir, "counters"), filepath.Join(dir, "profile")
	if err := os.Mkdir(counters, 0o700); err != nil {
		return "", err
	}
	packages := program // without it the counters are not written
	for _, p := range simulated {
		packages += ",./" + p
	}
	for _, args := range [][]string{
		{"go", "build", "-cover", "-covermode=atomic", "-coverpkg=" + packages, "-o", binary, program},
		{binary, "-n", strconv.Itoa(n)},
		{"go", "tool", "covdata", "textfmt", "-i=" + counters, "-o", profile},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOCOVERDIR="+counters)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(err, errors.New(string(out)))
		}
	}
	b, err := os.ReadFile(profile)
	return string(b), err
}
