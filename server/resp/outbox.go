package resp

import (
	"slices"
	"sync"
	"time"
)

// An outbox has what a connection has not read of its answers. Most never have any:
// it is for clients that send all of a long pipeline before they read, who would wait
// for the server for ever, and the server for them.
//
// While there is something in it, a goroutine writes it, and what is written later
// goes in behind. It has a bound, beyond which nothing more is read from the
// connection. Where all of them together have too much, whoever adds to it is dropped:
// thousands that read nothing would fill the memory with one answer each.
type outbox struct {
	mu      sync.Mutex
	queue   [][]byte // of flushAt bytes at most
	bytes   int
	writing bool
	err     error
	less    sync.Cond // something was written
}

// busy reports whether what is written now must go behind something else.
func (o *outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing || o.err != nil
}

// put copies b, and returns when there is room for more. An error is that of an
// earlier write.
func (o *outbox) put(c *conn, b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.less.L = &o.mu
	if o.err != nil {
		return o.err
	}
	if c.backlog.Load()+int64(len(b)) > backlogAll {
		return errBacklog
	}
	o.bytes += len(b)
	c.backlog.Add(int64(len(b)))
	for part := range slices.Chunk(b, flushAt) {
		o.queue = append(o.queue, slices.Clone(part)) // b has room that nobody counts
	}
	if !o.writing {
		o.writing = true
		go o.write(c)
	}
	for o.err == nil && (o.bytes > backlogEach || o.bytes > flushAt && c.backlog.Load() > backlogWait) {
		o.less.Wait()
	}
	return o.err
}

// write writes all there is, a part at a time: each has to be taken within the
// connection's patience.
func (o *outbox) write(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.queue) > 0 {
		part := o.queue[0]
		o.mu.Unlock()
		c.nc.SetWriteDeadline(time.Now().Add(c.Patience))
		_, err := c.nc.Write(part)
		o.mu.Lock()
		o.err = err
		o.queue[0], o.queue = nil, o.queue[1:]
		o.bytes -= len(part)
		c.backlog.Add(-int64(len(part)))
		o.less.Broadcast()
	}
	c.backlog.Add(-int64(o.bytes))
	o.queue, o.bytes, o.writing = nil, 0, false
	o.less.Broadcast()
}

// wait returns when everything is written, or cannot be.
func (o *outbox) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.less.L = &o.mu
	for o.writing {
		o.less.Wait()
	}
}
