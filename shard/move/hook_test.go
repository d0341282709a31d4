package move

import (
	"context"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A hook sees each message to a server before it is sent, and after. One that it loses is
// not sent, and its connection is closed.
type hook struct {
	before, after func(message string)
	loses         func(message string) bool
}

// hooked is a server whose connections have a hook.
func hooked(s topology.Server, h hook) topology.Server {
	config := s.Config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &hookedConn{c, h}, nil
	}
	return topology.Server{Name: s.Name, Config: config}
}

type hookedConn struct {
	net.Conn
	hook
}

func (c *hookedConn) Write(b []byte) (int, error) {
	if c.before != nil {
		c.before(string(b))
	}
	if c.loses != nil && c.loses(string(b)) {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	if c.after != nil {
		c.after(string(b))
	}
	return n, err
}

// once calls a function at the first message in which a pattern is found.
func once(pattern string, f func()) func(string) {
	re := regexp.MustCompile(pattern)
	done := false
	return func(message string) {
		if !done && re.MatchString(message) {
			done = true
			f()
		}
	}
}

// seizes is in the message that begins the transaction in which a mover lets a shard go. Later ones find the tables
// locked: who changes them then waits for the mover, which waits for him.
const seizes = `BEGIN; .*firn\.hold_off_autovacuum`

// at is a server like another one, whose mover does something before or after a message.
func at(s *site, when, pattern string, f func()) topology.Server {
	h := hook{before: once(pattern, f)}
	if when == "after" {
		h = hook{after: once(pattern, f)}
	}
	return hooked(s.Server, h)
}

// serverAt is a server of a URL.
func serverAt(name, url string) topology.Server {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		panic(err)
	}
	return topology.Server{Name: name, Config: config}
}

// hasty are options for tests on a busy machine.
func hasty() *Options { return &Options{Lag: 5 * time.Second, Patience: 30 * time.Second} }

// ownersOf says which of two sites serve a shard, as "a", "b" or nothing.
func ownersOf(sites ...*site) func(n string) string {
	return func(n string) string {
		var names []string
		for _, s := range sites {
			var serves bool
			if err := s.QueryRow(context.Background(), "SELECT coalesce((SELECT s.state = 'open' AND firn.is_here(s) FROM firn.shard AS s WHERE s.shard = "+n+"), false)").Scan(&serves); err == nil && serves {
				names = append(names, s.Name)
			}
		}
		return strings.Join(names, ",")
	}
}
