package httpapi

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Listener returns a listener whose connections bear the time limits of [NewServer] at
// a fraction of their cost. net/http sets five deadlines for a request, nearly all of
// them later than the one before; here a timer is moved only when it has come.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// A conn has deadlines that are set when those before have come.
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

// A deadline is one that is wanted, and the one that is set: never a later one.
type deadline struct {
	sync.Mutex
	wanted time.Time // zero: none
	armed  time.Time // zero: none
	set    func(time.Time) error
}

func (d *deadline) want(t time.Time) error {
	d.Lock()
	defer d.Unlock()
	d.wanted = t
	if t.IsZero() || !d.armed.IsZero() && !t.Before(d.armed) {
		return nil // the one that is set comes first, and is looked at then
	}
	d.armed = t
	return d.set(t)
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
