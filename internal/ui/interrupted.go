package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// A work is what a command has done so far, for the line that it prints when a signal ends it.
type work struct {
	done  atomic.Pointer[func() string]
	lines atomic.Int64 // of standard output
	said  atomic.Bool
}

type workKey struct{}

// WithWork returns a context in which [Tell] has an effect, and out with the lines that are
// printed there counted.
func WithWork(ctx context.Context, out io.Writer) (context.Context, io.Writer) {
	w := &work{}
	return context.WithValue(ctx, workKey{}, w), &countedOutput{out, w}
}

// Tell says how to put into words what the command has done so far, in case a signal ends it. The
// words are asked for then, also while the command runs. Nil means that the command says it itself.
func Tell(ctx context.Context, done func() string) {
	if ctx == nil {
		return
	}
	if w, ok := ctx.Value(workKey{}).(*work); ok {
		w.done.Store(&done)
	}
}

// InterruptedWork returns the signal that ended ctx, if one did, and what was done before it: in the
// words of [Tell], or else in those of printed, which gets the number of lines that were printed. It
// returns "" where the command has said it, and after the first call.
func InterruptedWork(ctx context.Context, printed func(lines int64) string) (Interrupted, string) {
	var i Interrupted
	w, ok := ctx.Value(workKey{}).(*work)
	if !ok || !errors.As(context.Cause(ctx), &i) || w.said.Swap(true) {
		return i, ""
	}
	switch done := w.done.Load(); {
	case done == nil:
		return i, printed(w.lines.Load())
	case *done == nil:
		return i, ""
	default:
		return i, (*done)()
	}
}

// countedOutput counts the lines that are written to an output.
type countedOutput struct {
	io.Writer
	work *work
}

func (c *countedOutput) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.work.lines.Add(int64(bytes.Count(b[:n], []byte{'\n'})))
	return n, err
}

// An Input is standard input that ends with its context.
type Input struct {
	io.Reader
	Context context.Context
}

func (i Input) Read(b []byte) (int, error) {
	if err := i.Context.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(b)
}

// Within returns what read returns, or the cause of ctx soon after that has ended. It is for reads that a context
// cannot end: to open a named pipe waits for its writer. Such a call is left behind. A file that is at hand is
// read also after the end, for what is said of it then.
func Within[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(lastRead):
		var none T
		return none, context.Cause(ctx)
	}
}

// lastRead is how long a read may take after its context has ended.
const lastRead = 300 * time.Millisecond

// PrintInterrupted prints what was done before a signal ended the command.
func PrintInterrupted(w io.Writer, done string) {
	if asJSON(w) {
		encode(w, message{Note: "interrupted: " + done})
		return
	}
	PrintNote(w, "firn: interrupted: %s", done)
}
