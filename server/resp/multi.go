package resp

import "fmt"

// MULTI and EXEC are how several clients send a pipeline, whether anybody wants a
// transaction or not. Here they are no more than that: ids that are drawn together
// are no different from ids that are drawn one after the other.

// queueMax is how many bytes of commands may wait for EXEC.
const queueMax = 1 << 20

// A queue is what was sent since MULTI.
type queue struct {
	raw   []byte
	n     int
	wrong bool // something was refused, so that all of it is
}

func (c *conn) multi([][]byte) {
	c.queue = &queue{}
	c.ok()
}

func (c *conn) discard([][]byte) {
	if c.queue == nil {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.unqueue()
	c.ok()
}

func (c *conn) unqueue() *queue {
	q := c.queue
	if q != nil {
		c.backlog.Add(-int64(len(q.raw)))
	}
	c.queue = nil
	return q
}

// enqueue keeps a command for EXEC.
func (c *conn) enqueue(one *command, args [][]byte) {
	q := c.queue
	var why string
	switch {
	case one.group == "connection", one.group == "transactions":
		why = "ERR " + one.name + " is not allowed between MULTI and EXEC"
	case len(q.raw)+largeBuffer > queueMax || c.backlog.Load() > backlogWait:
		why = fmt.Sprintf("ERR too much between MULTI and EXEC: %d commands are kept", q.n)
	}
	if why != "" {
		c.refuse(why)
		return
	}
	before := len(q.raw)
	q.raw = appendCommand(q.raw, args)
	c.backlog.Add(int64(len(q.raw) - before))
	q.n++
	if !c.hush {
		c.simple("QUEUED")
	}
}

// appendCommand writes a command as it is parsed.
func appendCommand(b []byte, args [][]byte) []byte {
	r := reply{out: b}
	r.array(len(args))
	for _, a := range args {
		r.bulk(string(a))
	}
	return r.out
}

func (c *conn) exec([][]byte) {
	q := c.unqueue()
	switch {
	case q == nil:
		c.fail("ERR EXEC without MULTI")
		return
	case q.wrong:
		c.fail("EXECABORT Transaction discarded because of previous errors.")
		return
	case c.hush:
		return // what nobody hears of is not drawn
	}
	c.array(q.n)
	var args [][]byte // those of the connection are in use
	for rest := q.raw; len(rest) > 0 && c.lost == nil; {
		used, some, err := parse(rest, args[:0], queueMax)
		if err != nil {
			panic(err) // it was written by appendCommand
		}
		args, rest = some, rest[used:]
		c.command(args)
		c.relieve()
	}
	c.flush()
}
