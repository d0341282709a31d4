package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/server"
)

// A conn is one connection. Its goroutine alone uses it, except for what says
// otherwise.
type conn struct {
	*listener
	nc       net.Conn
	id       uint64
	began    time.Time
	draining atomic.Bool // set by others
	outbox   outbox
	secret   bool // TLS: a write that has timed out cannot be gone on with

	session  *server.Session
	failures int // of AUTH
	protocol int
	name     string // CLIENT SETNAME
	library  string // CLIENT SETINFO
	release  string
	safe     bool // numbers above 2^53-1 are strings
	mute     muting
	hush     bool // the command that is being answered is not to be
	quit     bool
	last     *command // that was asked for
	queue    *queue   // since MULTI
	lost     error    // why nothing can be written any more

	small      [smallBuffer]byte
	large      *[largeBuffer]byte // nil: the small one does
	in         []byte             // one of them
	start, end int                // what was read of it, and not answered

	commands, seen uint64    // answered; and at the last check
	active         time.Time // when it was last seen to answer any, or to begin one
	known          time.Time // when it was last seen to have said who it is
	resting        bool      // no check is due soon

	*work // while something is answered
}

var (
	errIdle     = errors.New("idle for too long")
	errDraining = errors.New("the server ends")
	errBacklog  = errors.New("too much that is not read, of all connections together")
)

// run answers until either side has enough.
func (c *conn) run() {
	defer c.listener.end(c)
	err := c.open()
	for err == nil && !c.quit {
		if err = c.fill(); err == nil {
			err = c.answer()
		}
	}
	c.unqueue()
	c.start = c.end
	c.shrink()
	wanted := err == nil || errors.Is(err, errDraining) || errors.Is(err, io.EOF)
	if !wanted {
		c.Stats.Dropped.Add(1)
		c.Logger.Debug("connection dropped", "id", c.id, "client", c.nc.RemoteAddr(), "error", err)
	}
	var wrong protocolError
	if wanted || errors.As(err, &wrong) {
		c.outbox.wait()
		farewell(c.nc)
		return
	}
	c.nc.Close()
	c.outbox.wait()
}

// open does what comes before the first command.
func (c *conn) open() error {
	c.in, c.active, c.known = c.small[:], c.began, c.began
	c.reset()
	nc := c.nc
	if t, ok := nc.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.ctx, c.Patience)
		defer cancel()
		c.secret = true
		if err := t.HandshakeContext(ctx); err != nil {
			return err
		}
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok { // a peer that has vanished says nothing
		t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4})
	}
	return c.arm(c.interval)
}

// reset makes the session what it was at the beginning.
func (c *conn) reset() {
	c.session, _ = c.server.Enter("") // which nobody is refused
	c.protocol, c.name, c.library, c.release = 2, "", "", ""
	c.safe, c.mute = c.Strings, speaking
	c.unqueue()
}

// fill reads what has come, at least something.
func (c *conn) fill() error {
	for {
		n, err := c.nc.Read(c.in[c.end:])
		if n > 0 {
			begins := c.end == c.start
			c.end += n
			if c.resting {
				if begins { // how long it takes counts from here
					c.active = time.Now()
				}
				if !c.stranger() {
					c.known = time.Now()
				}
				return c.arm(c.interval)
			}
			return nil
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
	}
}

// check is called once in a while, when nothing has come. It ends a connection that
// does nothing for too long, and takes the large buffer from one that is idle.
func (c *conn) check() error {
	if c.draining.Load() {
		return errDraining
	}
	now := time.Now()
	answered := c.commands != c.seen
	if answered {
		c.seen, c.active = c.commands, now
	}
	limit, since := c.Idle, c.active
	if c.end > c.start {
		limit = min(c.Patience, c.Idle)
	}
	if c.stranger() { // a PING does not say who it is
		limit, since = min(c.Patience, c.Idle), c.known
	} else {
		c.known = now
	}
	left := limit - now.Sub(since)
	if left <= 0 {
		return errIdle
	}
	if answered {
		left = min(left, c.interval)
	} else {
		c.shrink()
	}
	return c.arm(left)
}

// arm has a read give up after d, and a short write a little later.
func (c *conn) arm(d time.Duration) error {
	c.resting = d > c.interval
	now := time.Now()
	if !c.outbox.busy() { // which has a deadline of its own
		c.nc.SetWriteDeadline(now.Add(d + c.interval))
	}
	err := c.nc.SetReadDeadline(now.Add(d))
	if c.draining.Load() { // whose deadline may be the one that was overwritten
		err = c.nc.SetReadDeadline(past)
	}
	return err
}
