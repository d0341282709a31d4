package trouble

import (
	"context"
	"errors"
	"strings"
)

// postgres is what to do about an error of a PostgreSQL server, whatever was asked, by SQLSTATE.
var postgres = map[string]string{
	"25006": "the connection is read-only: a standby, or default_transaction_read_only is on; connect to the primary, for example with target_session_attrs=read-write",
	"28000": "the server refuses this user; check the user, its password and pg_hba.conf",
	"28P01": "the server refuses the password; check user and password",
	"3D000": "the database does not exist: check its name. Only if no program has used it under another name: CREATE DATABASE",
	"53100": "the server's disk is full; free some space",
	"53200": "the server is out of memory; look in its log for what uses it, then try again",
	"53300": "the server has too many connections; close some, raise max_connections, or put PgBouncer in front",
	"57014": "the server cancelled the statement, for example after statement_timeout; try again, and raise statement_timeout for this role if it comes again",
	"57P01": "the server is shutting down, or an administrator ended the connection; try again when the server runs (pg_isready)",
	"57P02": "the server ended the connection because of a crash and starts again; wait until it answers (pg_isready), then try again",
	"57P03": "the server is starting up or shutting down; wait until it answers (pg_isready), then try again. If it does not: its log says why",
}

// passing are the SQLSTATEs of what passes by itself: what others did or do at the same time, too many
// connections, a server that starts or ends.
var passing = []string{"40001", "40P01", "53300", "57P01", "57P02", "57P03"}

// State is the SQLSTATE that a PostgreSQL server has answered, or "". The errors of pgx and of
// lib/pq have it.
func State(err error) string {
	var s interface{ SQLState() string }
	if errors.As(err, &s) {
		return s.SQLState()
	}
	return ""
}

// PostgreSQL says what to do about an error of a PostgreSQL server or of the way to it, or "".
func PostgreSQL(err error) string {
	if text, ok := postgres[State(err)]; ok {
		return text
	}
	if Distrusted(err) {
		return "the server's certificate cannot be trusted; check sslrootcert, sslmode and the host's name"
	}
	if connecting := strings.HasPrefix(err.Error(), "failed to connect to"); connecting { // so pgx says
		switch {
		case strings.Contains(err.Error(), "received unexpected message"), strings.Contains(err.Error(), "unknown message type"):
			return "what answers is not PostgreSQL; check the host and the port"
		case errors.Is(err, context.DeadlineExceeded):
			return "the server has not answered in time: is it overloaded? Or is this the address of a PostgreSQL server?"
		}
	}
	return Unreachable(err, err.Error() == "conn closed") // pgx says that in a transaction
}
