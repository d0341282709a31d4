package ui

import (
	"errors"
	"io"
)

// ErrNoReader: whoever read standard output has closed it.
var ErrNoReader = errors.New("nobody reads the output")

// Output is standard output. It tells a closed pipe there from one anywhere
// else: that to a store is an error like any other.
type Output struct{ io.Writer }

func (o Output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if isClosedPipe(err) {
		err = ErrNoReader
	}
	return n, err
}
