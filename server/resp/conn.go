package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
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

// A work is what it takes to answer. Connections that have nothing to answer have
// none.
type work struct {
	reply
	args   [][]byte
	group  group
	values []server.Value
}

var (
	works  = sync.Pool{New: func() any { return &work{} }}
	larges = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

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

// stranger reports whether the connection has yet to say who it is.
func (c *conn) stranger() bool { return c.server.Guarded() && c.session.Name() == "" }

// answer answers all complete commands that were read, with one write unless that
// is long.
func (c *conn) answer() error {
	c.work = works.Get().(*work)
	c.reply.protocol = c.protocol
	before := c.commands
	err := c.all()
	if c.lost == nil {
		c.lost = c.send()
	}
	if err == nil {
		err = c.lost
	}
	c.Stats.Commands.Add(c.commands - before)
	c.work.release()
	c.work = nil
	c.room()
	return err
}

func (c *conn) all() error {
	limit := largeBuffer
	if c.stranger() {
		limit = strangers
	}
	for c.start < c.end && !c.quit {
		used, args, err := parse(c.in[c.start:c.end], c.args[:0], limit)
		c.args = args[:0]
		if err != nil {
			if errors.Is(err, errPartial) {
				if c.end-c.start < limit {
					break
				}
				err = protocolError("the command is too long")
			}
			c.flush()
			c.fail("ERR " + err.Error())
			return err
		}
		c.start += used
		if len(args) == 0 {
			continue
		}
		c.commands++
		c.command(args)
		c.relieve()
		if c.lost != nil {
			return c.lost
		}
	}
	c.flush()
	return nil
}

// relieve writes what there is if it is much.
func (c *conn) relieve() {
	if len(c.out) >= flushAt && c.lost == nil {
		c.lost = c.send()
	}
}

// release gives back what can be used for other connections, unless it is large.
func (w *work) release() {
	w.group.clear() // a connection that is lost leaves something
	if cap(w.out) <= 8*flushAt {
		w.out = w.out[:0]
		clear(w.args[:cap(w.args)]) // they point into the connection
		works.Put(w)
	}
}

// room makes room for what comes next behind what is left of a command. A read that
// has filled the small buffer is followed by more.
func (c *conn) room() {
	full := c.end == len(c.in)
	rest := c.in[c.start:c.end]
	if full && c.large == nil {
		c.large = larges.Get().(*[largeBuffer]byte)
		c.in = c.large[:]
	}
	c.start, c.end = 0, copy(c.in, rest)
}

// shrink gives the large buffer back, if what is left of a command has room in the
// small one.
func (c *conn) shrink() {
	if c.large == nil || c.end-c.start > smallBuffer {
		return
	}
	c.start, c.end = 0, copy(c.small[:], c.in[c.start:c.end])
	c.in = c.small[:]
	larges.Put(c.large)
	c.large = nil
}

// send writes what there is to be written. What a connection that can be gone on with
// does not take soon is left to its outbox, so that it is read from meanwhile.
func (c *conn) send() error {
	out := c.out
	if len(out) == 0 {
		return nil
	}
	if !c.outbox.busy() {
		long := len(out) >= longWrite && !c.secret
		switch {
		case c.secret: // it takes as long as it takes, and so did the draws before it
			c.nc.SetWriteDeadline(time.Now().Add(c.Patience))
		case long:
			c.nc.SetWriteDeadline(time.Now().Add(soon))
		}
		n, err := c.nc.Write(out)
		if long {
			c.nc.SetWriteDeadline(time.Now().Add(2 * c.interval))
		}
		if err == nil {
			c.out = out[:0]
			return nil
		}
		if c.secret || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		out = out[n:]
	}
	c.out = nil
	return c.outbox.put(c, out)
}

// A write of longWrite bytes is one that a peer may not take at once, and soon is how
// long it is waited for. Shorter ones have the deadline that arm has set.
const (
	longWrite = 4 << 10
	soon      = 20 * time.Millisecond
)
