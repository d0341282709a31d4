package ui

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// An Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ syscall.Signal }

func (i Interrupted) Error() string { return i.String() }

// samePress is how long after a signal another one is of the same press: timeout(1) sends one to its
// child and one to the process group, and a shell may pass on what the terminal has sent already.
const samePress = 100 * time.Millisecond

// UntilSignal returns a context that the first signal to stop ends. The second
// ends the process as if there were no first, unless it comes within 100 ms.
func UntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			if s, ok := s.(syscall.Signal); ok {
				cancel(Interrupted{s})
			}
			time.Sleep(samePress)
			signal.Stop(signals)
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// UntilStopped returns a context that the first SIGINT or SIGTERM ends. The second
// ends the process, also where it is the first of a container, which the kernel
// spares signals that nobody handles; again is called before, with the second. One that
// comes within 100 ms of the first is not the second.
func UntilStopped(ctx context.Context, again func(os.Signal)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-over:
				return
			case s := <-signals:
				code, ok := s.(syscall.Signal)
				switch {
				case ok && first.IsZero():
					first = time.Now()
					cancel(Interrupted{code})
				case ok && time.Since(first) > samePress:
					again(code)
					os.Exit(128 + int(code))
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(over); cancel(nil) }
}

// Signalled returns the exit code of the signal that ended ctx, if one did, or
// err: whoever has stopped the command knows why it stopped.
func Signalled(ctx context.Context, err error) error {
	var i Interrupted
	if err != nil && errors.As(context.Cause(ctx), &i) {
		return Exit(128 + int(i.Signal))
	}
	return err
}
