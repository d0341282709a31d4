// Command run takes firn's rules out of its own files, one at a time, and prints in which schedule of
// the simulation, or by which test, that was found, as a page.
//
//	go run ./internal/mutants/run > docs/proof/mutants.md
//	go run ./internal/mutants/run -only 'quarantine' -n 100000
//
// It ends with 1 when a rule was not missed, and with 2 when something could not be run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/firn-id/firn/internal/mutants"
)

func main() {
	n := flag.Int("n", 15_000, "how many `schedules` are searched for each")
	only := flag.String("only", "", "only mutants whose name or file matches this regular `expression`")
	jobs := flag.Int("j", runtime.GOMAXPROCS(0), "how many `mutants` are built and run at once, each by one processor")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *n < 1 || *jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		fmt.Fprintln(os.Stderr, "run: not in the repository:", err)
		os.Exit(2)
	}
	var some []mutants.Mutant
	for _, m := range mutants.All {
		if pattern.MatchString(m.Name) || pattern.MatchString(m.File) {
			some = append(some, m)
		}
	}
	search, err := mutants.NewSearch(ctx, root, *n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(2)
	}
	code := run(ctx, search, some, *n, *jobs)
	search.Close()
	os.Exit(code)
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// A result is what came of looking for a mutant.
type result struct {
	found string
	err   error
}

func run(ctx context.Context, search *mutants.Search, some []mutants.Mutant, n, jobs int) (code int) {
	results := make([]chan result, len(some))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	turns := make(chan int, len(some))
	for i := range some {
		turns <- i
	}
	close(turns)
	for range jobs {
		go func() {
			for i := range turns {
				found, err := search.Find(ctx, some[i])
				results[i] <- result{found, err}
			}
		}()
	}
	began, missed := time.Now(), 0
	fmt.Printf("# Rules taken out of the code\n\nEach row is firn without one rule, built from its own files with one text replaced.\n\n| rule taken out | in | situation | found in at most %d schedules |\n|---|---|---|---|\n", n)
	for i, m := range some {
		r := <-results[i]
		switch {
		case ctx.Err() != nil:
			return 2
		case r.err != nil:
			fmt.Fprintln(os.Stderr, "run:", r.err)
			code, r.found = 2, "**could not be run**"
		case r.found == "":
			r.found, code = "**not found**", max(code, 1)
			missed++
		}
		name, like := m.Name, m.Like
		if m.With != "" {
			name += "; and " + m.With
		}
		if like == "" {
			like = "any"
		}
		if m.Tests != "" {
			like = "tests of `" + m.Package + "`"
		}
		fmt.Printf("| %s | `%s` | %s | %s |\n", name, m.File, like, r.found)
	}
	commit, _ := git(ctx, "rev-parse", "--short=8", "HEAD")
	fmt.Printf("\n%d of %d found, in %s, on %s with commit %s: `go run ./internal/mutants/run -n %d`.\n",
		len(some)-missed, len(some), time.Since(began).Round(time.Second), began.UTC().Format(time.DateOnly), commit, n)
	return code
}
