// Package trouble explains why a database server, such as PostgreSQL or Redis, cannot be reached or
// refuses to serve firn: it turns the errors of drivers into a cause and the next step.
package trouble

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"
)

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
