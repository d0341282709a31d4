// Command firn makes 64-bit ids, says what is in one, and looks after the leases
// behind them.
//
// Data goes to standard output; errors, hints and warnings to standard error.
// The exit code is 0, 1 if it failed, 2 if what it was given is wrong, and 3 if
// a check found a problem.
//
// Each subcommand is a file of its name. What they share:
//
//	root.go fail.go progress.go       flags of all, errors with hints and exit codes
//	variables.go                      FIRN_ variables: which there are, which are not ours
//	settings.go knobs.go kinds.go     what is in force: of flags, FIRN_ variables and firn.yaml
//	firnyaml.go seriesyaml.go formyaml.go   the reading of firn.yaml
//	store.go                          the store that is opened, and when none is
//	poolopen.go poolerrors.go         a pool as settings and record say it; what to do where it cannot be leased from
//	drawing.go printer.go counters.go series of every kind: drawn from, printed, restored
//	form.go formread.go               public forms: written, read
//	answers.go                        ids as arguments or lines
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/firn-id/firn/internal/leash"
	"github.com/firn-id/firn/internal/ui"
)

func main() {
	leash.Become()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with everything it touches as an argument, and returns the exit
// code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	// A reader that has gone, as in "firn next -n 9999 | head", is an error of
	// Write like any other, so that there is time to give the worker back.
	signal.Ignore(syscall.SIGPIPE)

	root := newRoot()
	root.SetArgs(withStatement(args))
	root.SetIn(in)
	root.SetOut(ui.Output{Writer: out})
	root.SetErr(errs)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	cmd, err := root.ExecuteContextC(ctx)
	err = explain(cmd, err)
	if asked := cmd.Context(); asked != nil { // there is none where no command was found
		err = ui.Signalled(asked, err)
	}
	return report(errs, cmd, err)
}
