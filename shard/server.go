package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/trouble"
)

// A Server is a database that has shards of a cluster, or is to have some, as it is
// reached by who looks after them: as the role that owns the schema firn.
type Server struct {
	Name   string
	Config *pgx.ConnConfig
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// CheckServerName says what is wrong with the name of a server, or nil.
func CheckServerName(name string) error {
	if !serverName.MatchString(name) {
		return fmt.Errorf("shard: server %q: a name has up to 63 of A-Z, a-z, 0-9, '_', '.', '-', and begins with a letter or digit", name)
	}
	return nil
}

// A ServerError is what went wrong with one server.
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
		return nil, &ServerError{s.Name, explained(err)}
	}
	return c, nil
}

// explained is an error of the driver on one line, after what to do about it. Where the server says
// why, that is all that counts, and not how TLS was tried before.
func explained(err error) error {
	text := oneLine(err).Error()
	var said *pgconn.PgError
	if errors.As(err, &said) {
		text = said.Error()
	}
	if advice := trouble.PostgreSQL(err); advice != "" {
		text = fmt.Sprintf("%s (%s)", advice, text)
	}
	return &folded{text, err}
}

// oneLine is an error that the driver wrote over several lines, on one.
func oneLine(err error) error {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	if len(lines) < 2 {
		return err
	}
	// With and without TLS an address is away for the same reason.
	return &folded{strings.Join(slices.Compact(lines), " "), err}
}

type folded struct {
	text string
	err  error
}

func (f *folded) Error() string { return f.text }
func (f *folded) Unwrap() error { return f.err }

// An Answer is what a server said when all were asked.
type Answer struct {
	Server Server
	View   *View // nil with an error
	Err    error // of type *ServerError; it is ErrNoShards where there are none, and a StrayError where the address is wrong
}

// askPatience is how long a server is waited for.
const askPatience = 30 * time.Second

// Ask looks at all servers at once, and returns their answers in the same order.
func Ask(ctx context.Context, servers []Server) []Answer {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	answers := make([]Answer, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			view, err := s.look(ctx)
			answers[i] = Answer{s, view, err}
		})
	}
	all.Wait()
	views := make([]*View, len(servers))
	for i, a := range answers {
		views[i] = a.View
	}
	for i, s := range servers {
		if err := s.Outside(answers[i].View, answers[i].Err, views); err != nil {
			answers[i].View, answers[i].Err = nil, err
		}
	}
	return answers
}

func (s Server) look(ctx context.Context) (*View, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return s.LookAt(ctx, c)
}

// A Lock is held by whoever changes what firn has on a server, so that two do not
// mix. It is the lock of a transaction that lasts as long, so it holds behind a
// pooler in transaction mode too. Nothing that must be right rests on it.
type Lock struct{ conn *pgx.Conn }

// ErrLocked: somebody else changes what firn has on the server.
var ErrLocked = errors.New("another firn is at work on it")

// lockPatience is how long a lock is waited for: somebody who was killed may hold it
// until the server notices.
const (
	lockPatience = 5 * time.Second
	lockPause    = 50 * time.Millisecond
)

// Working is what a transaction that changes something under a [Lock] begins with. Who
// takes the lock next waits for it to end, though whoever began it was killed.
var Working = fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock_shared(%d, 1);\n", lockClass)

// Lock takes the server's lock, on a connection of its own. Where somebody else keeps
// it for seconds, the error is an [ErrLocked] that says who.
func (s Server) Lock(ctx context.Context) (*Lock, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, c); err != nil {
		c.Close(context.WithoutCancel(ctx))
		return nil, &ServerError{s.Name, err}
	}
	return &Lock{c}, nil
}

// beginLock begins the transaction of a lock. It keeps no snapshot, for which an index
// that is made concurrently under the lock would wait; and ends soon after its host has
// gone without a word.
const beginLock = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0; " +
	"SET LOCAL tcp_keepalives_idle = 10; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3"

func lock(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, beginLock, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		var got bool
		if err := c.QueryRow(ctx, fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d, 0)", lockClass)).Scan(&got); err != nil {
			return err
		}
		if got {
			return drain(ctx, c)
		}
		if time.Since(begun) > lockPatience {
			return fmt.Errorf("%w%s", ErrLocked, holder(ctx, c))
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drain waits for what was begun under the lock before.
func drain(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, fmt.Sprintf("SAVEPOINT drain; SELECT pg_advisory_xact_lock(%d, 1); ROLLBACK TO SAVEPOINT drain", lockClass), pgx.QueryExecModeSimpleProtocol)
	return err
}

// holder is who has the lock, as far as it shows.
func holder(ctx context.Context, c *pgx.Conn) string {
	var pid int
	var from, since string
	err := c.QueryRow(ctx, fmt.Sprintf(`SELECT a.pid, coalesce(host(a.client_addr), 'this host'), to_char(a.xact_start AT TIME ZONE 'UTC', 'HH24:MI:SS')
		FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %d AND l.objid = 0
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, lockClass)).Scan(&pid, &from, &since)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", from %s since %s UTC (pid %d)", from, since, pid)
}

// Release ends the lock.
func (l *Lock) Release(ctx context.Context) { l.conn.Close(context.WithoutCancel(ctx)) }

// LockAll keeps others from changing what firn has on the servers, until release is
// called. It is for order only: what must be right is looked at again on each server. All
// take the locks in the order of the names, so that no two wait for each other.
func LockAll(ctx context.Context, servers []Server) (release func(), err error) {
	var locks []*Lock
	release = func() {
		for _, l := range locks {
			l.Release(ctx)
		}
	}
	for _, s := range slices.SortedFunc(slices.Values(servers), func(a, b Server) int { return cmp.Compare(a.Name, b.Name) }) {
		l, err := s.Lock(ctx)
		if err != nil {
			release()
			return nil, err
		}
		locks = append(locks, l)
	}
	return release, nil
}
