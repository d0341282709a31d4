// Command run simulates schedules, in which the code that leases workers and draws
// numbers meets every fault there is, and looks for ids and numbers that repeat.
//
//	go run ./internal/sim/run -n 100000
//	go run ./internal/sim/run -seed 4711
//	go run ./internal/sim/run -like "the store is restored" -n 10000
//	go run ./internal/sim/run -wrong "the store's versions are counts"
//	go run ./internal/sim/run -pools -n 100000
//	go run ./internal/sim/run -names
//
// It ends with 0 when nothing went wrong, with 1 when something did or it was
// stopped, and with 2
// when it was called wrongly. Ctrl-C ends it, and it reports what was done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/firn-id/firn/internal/sim"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	sim.Options
	seed  uint64
	names bool
}

// Errors that were printed already.
var (
	errFound   = errors.New("something went wrong")
	errStopped = errors.New("stopped")
)

func run(args []string, out, errs io.Writer) int {
	var o options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&o.N, "n", 10_000, "how many `schedules`")
	flags.Uint64Var(&o.From, "from", 1, "`seed` of the first one")
	flags.Uint64Var(&o.seed, "seed", 0, "run the schedule of this `seed` alone, and print what happens")
	flags.StringVar(&o.Like, "like", "", "only schedules in the situation of this `name`; -names lists them")
	flags.StringVar(&o.Wrong, "wrong", "", "let the store or an operator do what has this `name`; -names lists them")
	flags.BoolVar(&o.Pools, "pools", false, "only schedules in which pools are created, lost, copied or get other workers")
	flags.BoolVar(&o.names, "names", false, "print the situations, and what a store or an operator can do wrong")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if o.N < 1 || o.From < 1 || flags.NArg() > 0 {
		fmt.Fprintln(errs, "run: -n and -from are at least 1, and there are no arguments but flags")
		return 2
	}
	switch err := o.run(out, errs); {
	case errors.Is(err, errFound), errors.Is(err, errStopped):
		return 1
	case err != nil:
		fmt.Fprintf(errs, "run: %v\n", err)
		return 2
	}
	return 0
}

func (o *options) run(out, errs io.Writer) error {
	switch {
	case o.names:
		return sim.WriteNames(out)
	case o.seed != 0:
		f, err := sim.Replay(o.seed, o.Options, out)
		if err == nil && f != nil {
			fmt.Fprintln(errs, f)
			return errFound
		}
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // whoever cannot wait types it again
	o.Done = new(atomic.Int64)
	hide := o.showProgress(errs)
	began := time.Now()
	total, failure, err := sim.Run(ctx, o.Options)
	hide()
	if err != nil {
		return err
	}
	if err := total.Write(out, time.Since(began)); err != nil {
		return err
	}
	stopped := failure == nil && total.Schedules < o.N
	if stopped {
		fmt.Fprintf(errs, "run: stopped after %d of %d; to go on: -from %d\n", total.Schedules, o.N, o.From+uint64(total.Schedules))
	}
	if failure != nil {
		command := failure.Command()
		if o.Pools {
			command += " -pools"
		}
		if o.Like != "" {
			command += fmt.Sprintf(" -like %q", o.Like)
		}
		fmt.Fprintf(errs, "%v\nto see it: %s\n", failure, command)
		return errFound
	}
	if stopped {
		return errStopped
	}
	return nil
}

// showProgress shows on a terminal how far it is, until the function that it
// returns is called.
func (o *options) showProgress(errs io.Writer) (hide func()) {
	f, ok := errs.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	began, quit, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-quit:
				fmt.Fprint(errs, "\r\x1b[K")
				return
			case <-t.C:
			}
			done := o.Done.Load()
			rate := float64(done) / time.Since(began).Seconds()
			left := time.Duration(float64(o.N-int(done)) / max(rate, 1) * float64(time.Second))
			fmt.Fprintf(errs, "\r%d of %d schedules (%.0f %%), %.0f a second, %s left\x1b[K",
				done, o.N, 100*float64(done)/float64(o.N), rate, left.Round(time.Second))
		}
	}()
	return func() { close(quit); <-ended }
}
