package topology

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reusing returns the server with a [Server.Ask] that uses a session again.
func (s Server) Reusing() Server {
	s.idle = new(idleSession)
	return s
}

// Ask calls f with a session of the server. The queries of f change no setting of the session, and leave no
// transaction and no lock in it. After [Server.Reusing] the session stays open for two seconds, and the next call
// uses it: a login costs more than most looks. Its errors are of type [*ServerError]. Calls at the same time have
// sessions of their own.
func (s Server) Ask(ctx context.Context, f func(*pgx.Conn) error) error {
	c := s.idle.take(ctx)
	if c == nil {
		var err error
		if c, err = s.Connect(ctx); err != nil {
			return err
		}
	}
	kept := false
	defer func() {
		if !kept {
			c.Close(context.WithoutCancel(ctx))
		}
	}()
	err := f(c)
	kept = err == nil && reusable(c) && s.idle.keep(c)
	if err != nil && !errors.As(err, new(*ServerError)) {
		err = &ServerError{s.Name, err}
	}
	return err
}

// reusable says whether a session is as a new one would be. One that prepares statements is not: a change of a table
// makes them fail.
func reusable(c *pgx.Conn) bool {
	switch c.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe:
		return false
	}
	return !c.IsClosed() && c.PgConn().TxStatus() == 'I'
}

const (
	keepTime  = 2 * time.Second // for the next step of a command
	pingTime  = 5 * time.Second // for the first answer of a session that was kept
	closeTime = time.Second
)

// An idleSession keeps one session for the next who asks. Nil keeps none.
type idleSession struct {
	mu   sync.Mutex
	conn *pgx.Conn
	end  *time.Timer
}

// take returns the session that is kept, if it still works.
func (i *idleSession) take(ctx context.Context) *pgx.Conn {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	c := i.conn
	i.conn = nil
	if c != nil {
		i.end.Stop()
	}
	i.mu.Unlock()
	if c == nil {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if err := c.Ping(patient); err != nil {
		c.Close(context.WithoutCancel(ctx))
		return nil
	}
	return c
}

// keep keeps a session, unless another one is kept.
func (i *idleSession) keep(c *pgx.Conn) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conn != nil {
		return false
	}
	i.conn = c
	i.end = time.AfterFunc(keepTime, func() { i.drop(c) })
	return true
}

// drop closes a session that nobody has asked for.
func (i *idleSession) drop(c *pgx.Conn) {
	i.mu.Lock()
	still := i.conn == c
	if still {
		i.conn = nil
	}
	i.mu.Unlock()
	if still {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		c.Close(ctx)
	}
}
