// Command servers looks after the test servers for make: it installs them, runs
// the tests and says what was skipped, and cleans up.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"github.com/firn-id/firn/internal/testserver"
)

const usage = `usage:
  servers install          install the servers that are missing, if that may be done
  servers postgres         fetch PostgreSQL 14 to 18, which FIRN_TEST_POSTGRES=15-18 has tests
                           talk to
  servers run [-at-once N] COMMAND...
                           the same as install, then run the tests, N test binaries at
                           once; the last lines say how many tests were skipped for want
                           of which server
  servers clean            remove what test runs left behind
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	code, err := 0, error(nil)
	switch args := os.Args[2:]; {
	case os.Args[1] == "install" && len(args) == 0:
		err = install()
	case os.Args[1] == "postgres" && len(args) == 0:
		err = testserver.Postgreses()
	case os.Args[1] == "run" && len(args) > 0:
		code, err = run(args)
	case os.Args[1] == "clean" && len(args) == 0:
		err = testserver.Clean()
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		code = 1
	}
	os.Exit(code)
}

// install fails only where the servers are required; elsewhere the tests of those
// that are missing are skipped, and counted.
func install() error {
	err := testserver.Install()
	if err != nil && os.Getenv("FIRN_REQUIRE_SERVERS") != "1" {
		fmt.Fprintln(os.Stderr, "servers:", err)
		return nil
	}
	return err
}

func run(args []string) (code int, err error) {
	var env []string
	if len(args) > 2 && args[0] == "-at-once" {
		most, err := strconv.ParseUint(args[1], 10, 8)
		if err != nil || most == 0 {
			return 0, fmt.Errorf("-at-once %s: a number from 1 to 255 is needed", args[1])
		}
		slots, remove, err := testserver.Slots(int(most))
		if err != nil {
			return 0, err
		}
		defer remove()
		env, args = append(env, slots), args[2:]
	}
	if err := install(); err != nil {
		return 0, err
	}
	skips, err := os.CreateTemp("", "firn-skips-")
	if err != nil {
		return 0, err
	}
	skips.Close()
	defer os.Remove(skips.Name())
	// The tests get an interrupt too, and it is for them to end.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), env...), "FIRN_TEST_SKIPS="+skips.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code, err = max(exit.ExitCode(), 1), nil
	}
	counted, cerr := testserver.Count(skips.Name())
	fmt.Print(counted)
	return code, errors.Join(err, cerr)
}
