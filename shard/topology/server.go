package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/trouble"
)

// A Server is a database with shards of a cluster, or for shards of one, with the address of the role that
// owns the schema firn.
type Server struct {
	Name   string
	Config *pgx.ConnConfig
	idle   *idleSession // nil where each look has a session of its own
}

// Compiled when it is needed: each start of the command would wait for that.
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`) })

// CheckServerName returns what is wrong with the name of a server, or nil.
func CheckServerName(name string) error {
	if !serverName().MatchString(name) {
		return fmt.Errorf("shard: server %q: a name has up to 63 of A-Z, a-z, 0-9, '_', '.', '-', and begins with a letter or digit", name)
	}
	return nil
}

// A ServerError says what went wrong with one server.
type ServerError struct {
	Server string
	Err    error
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("shard: server %s: %s", e.Server, strings.TrimPrefix(e.Err.Error(), "shard: "))
}
func (e *ServerError) Unwrap() error { return e.Err }

// Away reports whether the server is only not there: it does not answer, shuts down or starts. A
// server that refuses in words is there.
func (e *ServerError) Away() bool {
	var said *pgconn.PgError
	var network net.Error
	switch {
	case errors.Is(e.Err, context.Canceled), trouble.Distrusted(e.Err):
		return false
	case errors.As(e.Err, &said):
		return strings.HasPrefix(said.Code, "57P0")
	}
	return errors.As(e.Err, new(*pgconn.ConnectError)) || errors.As(e.Err, &network) ||
		errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) || errors.Is(e.Err, context.DeadlineExceeded)
}

// Connect makes a connection. Its errors, of type [*ServerError], name the server and
// show no password.
func (s Server) Connect(ctx context.Context) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, s.Config)
	if err != nil {
		return nil, &ServerError{s.Name, trouble.Explain(err)}
	}
	return c, nil
}
