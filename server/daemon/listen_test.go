package daemon

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
)

// dialled are connections that are accepted without a network, some seconds apart.
type dialled struct {
	net.Listener
	of   *fewConnections
	left int
}

func (l *dialled) Accept() (net.Conn, error) {
	if l.left == 0 {
		return nil, net.ErrClosed
	}
	l.left--
	l.of.told = l.of.told.Add(-6 * time.Second) // so much later it is
	_, c := net.Pipe()
	return c, nil
}

// As long as connections are refused, the log says so every now and then.
func TestServeTellsOfRefusals(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	l := &fewConnections{name: "http", log: slog.New(slog.NewTextHandler(&text, nil))}
	l.Listener = &dialled{of: l, left: 5}
	if _, err := l.Accept(); err != net.ErrClosed {
		t.Error(err)
	}
	if n := strings.Count(text.String(), "connections are refused"); n != 3 {
		t.Errorf("told %d times in 24 s, want 3:\n%s", n, &text)
	}
	if strings.Count(text.String(), " listener=http limit=0 refused=2\n") != 2 || strings.Count(text.String(), " refused=1\n") != 1 {
		t.Errorf("of five refused connections it tells:\n%s", &text)
	}
}

// A client that goes on sending gets its answer and then the end at once, also through
// what counts connections.
func TestServeHalfClose(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	ours, err := httpapi.Listener(&fewConnections{Listener: l, most: 1}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := ours.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
}

// A listener that fails while the server runs ends the server: the error names the listener and its address.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	o := &config.ServerOptions{Connections: 10, Idle: time.Minute}
	for _, flag := range []string{"resp", "http"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := server.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &front{options: o, server: srv, keys: new(keyring), log: slog.New(slog.DiscardHandler)}
		at := config.Address{Network: "tcp", At: l.Addr().String()}
		if err := f.open([]boundListener{{l, flag, at}}); err != nil {
			t.Fatal(err)
		}
		l.Close()
		select {
		case err = <-f.failed:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: a listener that was closed has not failed", flag)
		}
		var failed *ListenError
		if !errors.As(err, &failed) || !failed.Running || !strings.HasPrefix(err.Error(), "--"+flag+" "+at.At+": ") {
			t.Errorf("%s: %v", flag, err)
		}
		f.close()
	}
}
