package topology

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestServerErrorAway: only what may be a server that is not there is taken for one.
func TestServerErrorAway(t *testing.T) {
	for _, tt := range []struct {
		err  error
		away bool
	}{
		{&pgconn.PgError{Code: "57P01"}, true},
		{&pgconn.PgError{Code: "57P03"}, true},
		{&pgconn.PgError{Code: "28000"}, false},
		{&pgconn.PgError{Code: "28P01"}, false},
		{&pgconn.PgError{Code: "3D000"}, false},
		{&pgconn.PgError{Code: "42501"}, false},
		{&pgconn.PgError{Code: "42P01"}, false},
		{&pgconn.PgError{Code: "42883"}, false},
		{&pgconn.PgError{Code: "53300"}, false},
		{errors.Join(syscall.ECONNREFUSED, &pgconn.PgError{Code: "28P01"}), false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.OpError{Op: "remote error", Err: x509.UnknownAuthorityError{}}, false},
		{io.ErrUnexpectedEOF, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, false},
		{ErrNoCluster, false},
	} {
		if got := (&ServerError{"a", tt.err}).Away(); got != tt.away {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}
