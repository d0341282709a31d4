// Command run takes firn's rules out of its own files, one at a time, and prints where that
// was found, as a table.
//
//	go run ./internal/mutants/run
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
	"strings"
	"syscall"

	"github.com/firn-id/firn/internal/mutants"
)

func main() {
	n := flag.Int("n", 15_000, "how many `schedules` are searched for each")
	only := flag.String("only", "", "only mutants whose name or file matches this regular `expression`")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, pattern, *n))
}

func run(ctx context.Context, only *regexp.Regexp, n int) (code int) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run: not in the repository:", err)
		return 2
	}
	root := strings.TrimSpace(string(out))
	fmt.Printf("| rule taken out | in | found in at most %d schedules |\n|---|---|---|\n", n)
	for _, m := range mutants.All {
		if !only.MatchString(m.Name) && !only.MatchString(m.File) {
			continue
		}
		found, err := m.Find(ctx, root, n)
		switch {
		case ctx.Err() != nil:
			return 2
		case err != nil:
			fmt.Fprintln(os.Stderr, "run:", err)
			code = 2
			continue
		case found == "":
			found, code = "**not found**", max(code, 1)
		}
		name := m.Name
		if m.With != "" {
			name += ", and " + m.With
		}
		fmt.Printf("| %s | `%s` | %s |\n", name, m.File, found)
	}
	return code
}
