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
	"slices"
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
	case lost, isLost(err):
		return "the connection was lost"
	}
	return ""
}

// isLost reports whether a connection to a server was there, and has ended.
func isLost(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Passes reports whether an error of a server, or of the way to it, may pass though nobody changes anything.
func Passes(err error) bool {
	if state := State(err); state != "" {
		return slices.Contains(passing, state)
	}
	var network *net.OpError
	if errors.As(err, &network) {
		// Of TLS: the server wants another certificate, or none.
		return network.Op != "remote error" && (network.Op != "listen" || errors.Is(err, syscall.EADDRINUSE))
	}
	return errors.As(err, new(*net.DNSError)) || errors.Is(err, context.DeadlineExceeded) || isLost(err)
}
