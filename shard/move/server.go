package move

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/topology"
)

// An end is one of the two servers.
type end struct {
	topology.Server
	given topology.Server
	conn  *pgx.Conn
	batch string        // that a mover is at work on; empty: none yet
	try   time.Duration // how long writers may be kept waiting by a try to let a shard go
}

// newEnd is a server that is told what to do in one message each.
func newEnd(s topology.Server) *end {
	config := s.Config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return &end{Server: topology.Server{Name: s.Name, Config: config}, given: s, try: lockTime}
}

// A staleError says that the facts were not what they are any more: what a mover sent
// that has ended since came after they were looked at.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

const (
	// defaultPatience is how long a server is waited for that does not answer.
	defaultPatience = time.Minute
	// retryPause is between two tries to reach one.
	retryPause = 250 * time.Millisecond
)

// patiently does something again while a server is away: until it has failed for as long as
// the patience lasts, however long it went well before. What it does is of a kind that may have been
// done although there was no answer.
func patiently(ctx context.Context, patience time.Duration, f func() error) error {
	for failing := (time.Time{}); ; {
		err := f()
		if err == nil || !away(err) || ctx.Err() != nil {
			return err
		}
		if failing.IsZero() {
			failing = time.Now()
		} else if time.Since(failing) > patience {
			return err
		}
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (m *Mover) patiently(ctx context.Context, f func() error) error {
	return patiently(ctx, m.options.Patience, f)
}

// away says whether an error is that of a server that did not answer, or is about to
// end or to begin; that has ended the session, as this mover was held up; of a change
// of the catalog that met another one; or of a look at a copy that was dropped meanwhile.
func away(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300" || pg.Code == "25P03" ||
			pg.Code == "XX000" && strings.HasPrefix(pg.Message, "tuple concurrently") || pg.Code == "40P01" || dropped(err)
	}
	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed") ||
		strings.Contains(err.Error(), "unexpected EOF")
}

// dropped says whether a copy was dropped while something looked at it: firn.given_to says so with
// a code of its own, and PostgreSQL's functions about tables with a message that it never translates.
func dropped(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return pg.Code == "40001" || pg.Code == "XX000" &&
		(strings.HasPrefix(pg.Message, "could not open relation with OID") || strings.HasPrefix(pg.Message, "cache lookup failed for"))
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text, for standard_conforming_strings.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// sqlstate is the code of a server's error, or nothing.
func sqlstate(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// connect connects, unless that is done. Where it cannot, the connection that was lost stays,
// so that who uses it meets an error.
func (e *end) connect(ctx context.Context) error {
	if e.conn != nil && !e.conn.IsClosed() {
		return nil
	}
	c, err := e.open(ctx)
	if err == nil {
		e.conn = c
	}
	return err
}

// open makes a connection of its own.
func (e *end) open(ctx context.Context) (*pgx.Conn, error) {
	c, err := e.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// What is left of a mover that was killed, cut off or held up does not hold locks for
	// long. A transaction has to see what arrives while it lasts.
	settings := "SET statement_timeout = 0; SET search_path = pg_catalog, pg_temp; SET client_min_messages = error; SET default_transaction_isolation = 'read committed'; " +
		fmt.Sprintf("SET idle_in_transaction_session_timeout = %d; ", idleTime.Milliseconds()) +
		"SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; " +
		"SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('lock_timeout', 'idle_session_timeout', 'transaction_timeout')"
	if e.batch != "" {
		settings += "; " + e.signature()
	}
	if _, err := c.Exec(ctx, settings); err != nil {
		c.Close(context.WithoutCancel(ctx))
		return nil, e.fault(err)
	}
	return c, nil
}

// moverSession begins the application_name of a mover's sessions. The batch follows, so that others see that the move
// has a mover.
const moverSession = "firn move "

// signature is the SQL with which a session says which batch its mover is at work on.
func (e *end) signature() string { return "SET application_name = " + literal(moverSession+e.batch) }

// sign has a server know which batch the mover is at work on.
func (e *end) sign(ctx context.Context, batch string) error {
	e.batch = batch
	return e.call(ctx, e.signature())
}

func (e *end) fault(err error) error {
	if err == nil {
		return nil
	}
	return &topology.ServerError{Server: e.Name, Err: err}
}

// call runs a statement for what it does.
func (e *end) call(ctx context.Context, sql string, args ...any) error {
	if err := e.connect(ctx); err != nil {
		return err
	}
	_, err := e.conn.Exec(ctx, sql, args...)
	return e.fault(err)
}

// ask sends statements in one message, and returns the value that the last one gives.
func (e *end) ask(ctx context.Context, sql string) (value string, err error) {
	if err := e.connect(ctx); err != nil {
		return "", err
	}
	results, err := e.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", e.fault(err)
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

func closeAll(rest []*end) {
	for _, e := range rest {
		e.close()
	}
}

func (e *end) close() {
	if e.conn != nil {
		e.conn.Close(context.Background())
	}
}
