package trouble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
)

type refusal string

func (r refusal) Error() string    { return "refused" }
func (r refusal) SQLState() string { return string(r) }

// TestPostgreSQL: what the server says comes before what the network says, and what nobody knows has
// no advice.
func TestPostgreSQL(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{refusal("28P01"), "the server refuses the password; check user and password"},
		{fmt.Errorf("%w, %w", syscall.ECONNREFUSED, refusal("3D000")), "the database does not exist: check its name. Only if no program has used it under another name: CREATE DATABASE"},
		{refusal("42501"), ""},
		{refusal("57P03"), "the server is starting up or shutting down; wait until it answers (pg_isready), then try again. If it does not: its log says why"},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), "nothing listens at the address; is the server running?"},
		{&net.DNSError{}, "the host's name cannot be resolved"},
		{context.DeadlineExceeded, "the server has not answered in time"},
		{errors.New("conn closed"), "the connection was lost"},
		{errors.New("something else"), ""},
	} {
		if got := PostgreSQL(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

// TestPasses: what somebody has to do something about does not pass.
func TestPasses(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{refusal("57P03"), true},
		{fmt.Errorf("%w, %w", dial, refusal("53300")), true},
		{fmt.Errorf("%w, %w", dial, refusal("28P01")), false},
		{refusal("42501"), false},
		{dial, true},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{&net.DNSError{}, true},
		{context.DeadlineExceeded, true},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{&net.OpError{Op: "listen", Err: syscall.EADDRINUSE}, true},
		{&net.OpError{Op: "listen", Err: syscall.EADDRNOTAVAIL}, false},
		{&net.OpError{Op: "listen", Err: syscall.EACCES}, false},
		{errors.New("something else"), false},
	} {
		if got := Passes(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}
