// Command firn makes 64-bit ids, counters and dated numbers, serves them over HTTP and the Redis
// protocol, says what is in an id, and looks after pools, stores and shards.
//
// Data goes to standard output; errors, hints and warnings to standard error, as
// JSON with --json. docs/reference/exit-codes.md has the exit codes.
//
// Each subcommand is a file of its name. What they share:
//
//	root.go fail.go errorfacts.go     flags of all, what an error says, and what it says as JSON
//	variables.go                      which FIRN_ variables each reads
//	settings.go settingflags.go       the settings of package config, from flags and variables
//	hints.go                          commands in hints: completed with the store, config and servers
//	settingerrors.go poolerrors.go leaseerrors.go missing.go servehints.go   what to do, by error
//	drawing.go printer.go             series of every kind: drawn from, printed
//	formread.go answers.go            ids as arguments or lines
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/firn-id/firn/internal/leash"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/variable"
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
	output := &ui.Output{Writer: out}
	root.SetOut(output)
	messages := &ui.Messages{Writer: errs, AsJSON: asksForJSON(args)}
	root.SetErr(messages)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	cmd, err := root.ExecuteContextC(ctx)
	err = explain(cmd, err)
	if asked := cmd.Context(); asked != nil { // nil where no command was found
		if err = ui.Signalled(asked, err); errors.As(err, new(ui.Exit)) {
			sayInterrupted(asked, cmd)
		}
	}
	if err == nil && cmd.CommandPath() != "firn serve" { // which serves also where nobody reads what it prints
		err = output.Err()
	}
	return report(messages, cmd, err)
}

// asksForJSON reports whether a command line has --json, or the variable of it says so. It decides
// how help is printed, and an error that comes before the flags are read; afterwards [prepare] does.
func asksForJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	asks, err := strconv.ParseBool(os.Getenv(variable.Name("json")))
	asks = asks && err == nil
	for _, arg := range args {
		switch value, said := strings.CutPrefix(arg, "--json="); {
		case arg == "--json":
			asks = true
		case said:
			asks, err = strconv.ParseBool(value)
			asks = asks || err != nil
		}
	}
	return asks
}
