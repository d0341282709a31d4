package resp

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/firn-id/firn/server"
)

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
