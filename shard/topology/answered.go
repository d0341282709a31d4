package topology

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Answered reports whether the server has said anything at all, though it be a refusal: then it
// is there, and may serve its shards to others. Only what comes from the way to the server leaves
// that open, such as a refused connection, a timeout or an unknown host.
func (e *ServerError) Answered() bool { return answered(e.Err) }

// answered looks for anything but faults of the way: of several addresses one may have answered.
func answered(err error) bool {
	if of, ok := err.(*net.OpError); ok {
		return of.Op == "remote error" || of.Op == "local error" // of TLS: one side has refused the other
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			if answered(one) {
				return true
			}
		}
		return false
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return answered(wrapped)
	}
	return !ofTheWay(err)
}

// silences are the errors of a connection on which nothing has come.
var silences = []error{context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}

func ofTheWay(err error) bool {
	for _, one := range silences {
		if errors.Is(err, one) {
			return true
		}
	}
	var host *net.DNSError
	var system syscall.Errno
	return errors.As(err, &host) || errors.As(err, &system)
}
