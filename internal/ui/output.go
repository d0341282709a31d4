package ui

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrNoReader: whoever read standard output has closed it.
var ErrNoReader = errors.New("nobody reads the output")

// Output is standard output. It tells a closed pipe there from one anywhere
// else: that to a store is an error like any other.
type Output struct {
	io.Writer
	err atomic.Pointer[error]
}

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if isClosedPipe(err) {
		err = ErrNoReader
	}
	if err != nil {
		o.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Verdict is the output of a check. A reader that has gone, as "head" does, does not end the check: its
// exit code is the verdict.
type Verdict struct{ io.Writer }

func (v Verdict) Write(b []byte) (int, error) {
	n, err := v.Writer.Write(b)
	if errors.Is(err, ErrNoReader) {
		return len(b), nil
	}
	return n, err
}

// Err returns the first error of Write, also where nobody looked at it.
func (o *Output) Err() error {
	if err := o.err.Load(); err != nil {
		return *err
	}
	return nil
}
