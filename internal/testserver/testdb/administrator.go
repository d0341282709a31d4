package testdb

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// An administrator is a session of a server in which databases are made and dropped. It stays open, because a login
// costs several times what the making of a database does.
type administrator struct {
	sync.Mutex
	conn *pgx.Conn // nil: none yet
}

var administrators sync.Map // of *administrator, by the server's URL

// asAdministrator calls f with the session of a server's administrator.
func asAdministrator(ctx context.Context, server string, f func(*pgx.Conn) error) error {
	one, _ := administrators.LoadOrStore(server, new(administrator))
	a := one.(*administrator)
	a.Lock()
	defer a.Unlock()
	if err := a.connect(ctx, server); err != nil {
		return err
	}
	return f(a.conn)
}

// connect connects, unless the session that was left still works: tests end servers, and start them again.
func (a *administrator) connect(ctx context.Context, server string) error {
	if a.conn != nil {
		if a.conn.Ping(ctx) == nil {
			return nil
		}
		a.conn.Close(ctx)
		a.conn = nil
	}
	c, err := pgx.Connect(ctx, server)
	if err == nil {
		a.conn = c
	}
	return err
}
