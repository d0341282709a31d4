package tabletest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"sync/atomic"
	"testing"
)

// Hooks see the statements of connections. A transaction begins with the statement "begin"
// and ends with "commit" where the driver has functions for both.
type Hooks struct {
	Before func(statement string)
	After  func() error // replaces the success of a statement that was carried out
}

// Watch opens a database whose connections have hooks, and closes it with the test.
func Watch(tb testing.TB, driver, dsn string, h *Hooks) *sql.DB {
	tb.Helper()
	watched := sql.OpenDB(&connector{Connect(tb, driver, dsn).Driver(), dsn, h})
	tb.Cleanup(func() { watched.Close() })
	return watched
}

type connector struct {
	driver driver.Driver
	dsn    string
	hooks  *Hooks
}

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &watchedConn{conn.(sqlConn), c.hooks}, nil
}

func (c *connector) Driver() driver.Driver { return c.driver }

// A sqlConn is what the drivers' connections are.
type sqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
}

type watchedConn struct {
	sqlConn
	*Hooks
}

func (h *Hooks) see(statement string) {
	if h.Before != nil {
		h.Before(statement)
	}
}

func (h *Hooks) seen(err error) error {
	if err == nil && h.After != nil {
		err = h.After()
	}
	return err
}

func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.see(query)
	result, err := c.sqlConn.ExecContext(ctx, query, args)
	if err = c.seen(err); err != nil {
		return nil, err
	}
	return result, nil
}

func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.see(query)
	rows, err := c.sqlConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if err := c.seen(nil); err != nil {
		rows.Close()
		return nil, err
	}
	return rows, nil
}

func (c *watchedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.see("begin")
	tx, err := c.sqlConn.BeginTx(ctx, o)
	return &watchedTx{tx, c.Hooks}, err
}

type watchedTx struct {
	driver.Tx
	*Hooks
}

func (t *watchedTx) Commit() error {
	t.see("commit")
	return t.Tx.Commit()
}

// CountingDial returns a dialer whose connections count writes in sent: a driver makes one
// for all that it sends at once.
func CountingDial(sent *atomic.Int64) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &countedConn{conn, sent}, err
	}
}

type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}
