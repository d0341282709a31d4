package httpapi

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Listener returns a listener whose connections bear the time limits of [NewServer] at
// a fraction of their cost. net/http sets five deadlines for a request, most of them
// later than the one before, and for moments in which nothing waits. Here a timer is
// moved only for a call that it has to end earlier, and when it has come.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// A conn has deadlines that are set when they have to be.
type conn struct {
	net.Conn
	reading, writing deadline
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, reading: deadline{set: c.SetReadDeadline}, writing: deadline{set: c.SetWriteDeadline}}
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.reading.want(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writing.want(t) }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.reading.want(t), c.writing.want(t))
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.reading.begin(); err != nil {
		return 0, err
	}
	defer c.reading.end()
	for {
		n, err := c.Conn.Read(b)
		switch {
		case err == nil || c.reading.counts(err):
			return n, err
		case n > 0:
			return n, nil
		}
	}
}

func (c *conn) Write(b []byte) (written int, err error) {
	if err := c.writing.begin(); err != nil {
		return 0, err
	}
	defer c.writing.end()
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || c.writing.counts(err) {
			return written, err
		}
	}
}

// CloseWrite is what net/http asks for where a client goes on sending.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// A deadline is one that is wanted, and the one that is set: while a call is under
// way never a later one.
type deadline struct {
	sync.Mutex
	wanted time.Time // zero: none
	armed  time.Time // zero: none
	calls  int       // that are under way
	set    func(time.Time) error
}

func (d *deadline) want(t time.Time) error {
	d.Lock()
	defer d.Unlock()
	d.wanted = t
	if d.calls == 0 || !d.late() {
		return nil
	}
	d.armed = t
	return d.set(t)
}

// late reports whether what is set would end a call too late. Where it comes first,
// what is wanted is looked at then.
func (d *deadline) late() bool {
	return !d.wanted.IsZero() && (d.armed.IsZero() || d.wanted.Before(d.armed))
}

// begin begins a call, unless its deadline has come: net/http breaks off a call that
// has not begun with each request.
func (d *deadline) begin() error {
	d.Lock()
	defer d.Unlock()
	if d.late() {
		if !time.Now().Before(d.wanted) {
			return os.ErrDeadlineExceeded
		}
		d.armed = d.wanted
		if err := d.set(d.wanted); err != nil {
			return err
		}
	}
	d.calls++
	return nil
}

func (d *deadline) end() {
	d.Lock()
	defer d.Unlock()
	d.calls--
}

// counts reports whether an error is one for the caller: any but that of a deadline
// which is not wanted any more. Instead of that the wanted one is set.
func (d *deadline) counts(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	d.Lock()
	defer d.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return true
	}
	d.armed = d.wanted
	return d.set(d.wanted) != nil
}
