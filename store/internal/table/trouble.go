package table

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/firn-id/firn/store"
)

// An UnsentError is one before anything was sent that could write.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// Certain says that a Put that ended so was not and will not be carried out, whatever
// the server is: nothing was sent, or the condition did not hold.
func Certain(err error) bool {
	var unsent *UnsentError
	return errors.Is(err, store.ErrConflict) || errors.As(err, &unsent)
}

// Forgotten is the error of a table that was there before.
func Forgotten(server string) error {
	return &store.ForgotError{Store: server + " table firn_records", What: "the table is missing"}
}

// Explain has an error of a server say what to do, where advice knows. What is already
// an error of the contract comes back as it is.
func Explain(server string, err error, advice func(error) string) error {
	var unsent *UnsentError
	if errors.As(err, &unsent) {
		err = unsent.Err
	}
	var forgot *store.ForgotError
	if err == nil || errors.Is(err, store.ErrConflict) || errors.As(err, &forgot) {
		return err
	}
	return &explained{server, advice(err), err}
}

// An explained error prints where, what to do, and the cause.
type explained struct {
	server string
	advice string // may be empty
	cause  error
}

func (e *explained) Error() string {
	if e.advice == "" {
		return fmt.Sprintf("store/%s: %v", e.server, e.cause)
	}
	return fmt.Sprintf("store/%s: %s (%v)", e.server, e.advice, e.cause)
}

func (e *explained) Unwrap() error { return e.cause }

// Distrusted says that the server's certificate was refused.
func Distrusted(err error) bool {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		unproven  *tls.CertificateVerificationError
	)
	return errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid) || errors.As(err, &unproven)
}

// Unreachable says what is wrong with the way to the server, or "". Lost is whether the
// driver has an error of its own for a connection that ended, and this is it.
func Unreachable(err error, lost bool) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at the address; is the server running?"
	case errors.Is(err, context.DeadlineExceeded):
		return "the server has not answered in time"
	case errors.Is(err, context.Canceled):
		return ""
	case lost, errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was lost"
	}
	return ""
}
