package httpapi

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// one is a listener of one connection.
type one chan net.Conn

func (l one) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l one) Close() error { return nil }
func (one) Addr() net.Addr { return &net.UnixAddr{} }

// TestHTTP2ReadsNothing: whoever goes on sending over HTTP/2 and reads nothing loses
// the connection. What ends a request there does not: the end has to be sent too.
func TestHTTP2ReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(http.NotFoundHandler())
		s.Protocols = new(http.Protocols)
		s.Protocols.SetUnencryptedHTTP2(true)
		here, there := net.Pipe()
		defer there.Close()
		l := make(one, 1)
		l <- here
		go s.Serve(Listener(l))
		defer close(l)
		settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		if _, err := io.WriteString(there, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); ; time.Sleep(time.Second) {
			_, err := io.WriteString(there, "\x00\x00\x08\x06\x00\x00\x00\x00\x00firnfirn") // PING
			if err != nil {
				return
			}
			if time.Since(start) > 2*idleFor {
				t.Fatal("it is still there")
			}
		}
	})
}
