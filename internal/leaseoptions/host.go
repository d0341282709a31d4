package leaseoptions

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// HostWorker is the worker that the host's name says: its number counts from the pool's
// first worker, so that web-0 has the first of 512-1023.
func HostWorker(info pool.Info, hostname func() (string, error)) (int64, error) {
	host, err := hostname()
	if err != nil {
		return 0, &HostNameError{err}
	}
	n, err := ordinal(host)
	if err != nil {
		return 0, &HostNameError{err}
	}
	n += info.First
	if n > info.Last {
		return 0, &HostError{host, lease.WorkerError{Pool: info.Name, Layout: info.Layout, Worker: n, First: info.First, Last: info.Last}}
	}
	return n, nil
}

// ordinal returns the number that a host's name ends in: 7 for web-7, as the pods of a
// StatefulSet are called.
func ordinal(host string) (int64, error) {
	host, _, _ = strings.Cut(host, ".")
	digits := host[len(strings.TrimRight(host, "0123456789")):]
	n, err := strconv.ParseInt(digits, 10, 62) // with a first worker added it is still a number
	if err != nil {
		return 0, fmt.Errorf("the host's name is %q, which does not end in a number", host)
	}
	return n, nil
}

// A HostNameError says that the host's name has no number for a worker.
type HostNameError struct{ Err error }

func (e *HostNameError) Error() string { return "worker hostname: " + e.Err.Error() }
func (e *HostNameError) Unwrap() error { return e.Err }

// Retryable is false; see firn.Retryable.
func (*HostNameError) Retryable() bool { return false }

// A HostError says that the host's name asks for a worker that the pool does not have.
type HostError struct {
	host string
	lease.WorkerError
}

func (e *HostError) Error() string {
	return fmt.Sprintf("host %s asks for worker %s, which is outside pool %q, which has workers %d-%d", e.host, e.Layout.NameWorker(e.Worker), e.Pool, e.First, e.Last)
}
func (e *HostError) Unwrap() error  { return &e.WorkerError }
func (e *HostError) Reason() string { return e.Error() } // not that of WorkerError
