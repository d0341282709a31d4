//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// A stopped is the signal that ended a torture.
type stopped struct{ syscall.Signal }

func (s stopped) Error() string { return s.Signal.String() }

// code is the exit code that says so, as a shell does.
func (s stopped) code() int { return 128 + int(s.Signal) }

// untilSignal returns a context that the first Ctrl-C or SIGTERM ends. The second ends
// the process.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals)
		cancel(stopped{s.(syscall.Signal)})
	}()
	return ctx
}

// stoppedBy returns the signal that ended ctx, if one did.
func stoppedBy(ctx context.Context) (s stopped, ok bool) {
	return s, errors.As(context.Cause(ctx), &s)
}
