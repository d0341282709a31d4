package resp_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

func TestTLS(t *testing.T) {
	config := tlsConfig()
	srv, err := server.New(nil, flake(t, "photo"), numbers(t, "orders", nil))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	w := serveOn(t, l, srv, &resp.Options{Patience: 700 * time.Millisecond})
	secret := func() *peer { return dialTLS(t, w) }

	p := secret()
	if got := p.do("INCR", "orders"); got != ":1" {
		t.Error(got)
	}
	p.send(strings.Repeat(array("FIRN.NEXT", "photo", "1000"), 20))
	for range 20 {
		if got := p.answer(); strings.Count(got, `"`) != 2000 {
			t.Errorf("%.80s", got)
		}
	}

	// Who does not speak TLS, and who says nothing, is sent away.
	plain, quiet := dial(t, w), dial(t, w)
	plain.send("INCR orders\r\n")
	plain.closed()
	quiet.closed()

	// One that has waited for longer than deadlines are set for is still there.
	if got := p.do("INCR", "orders"); got != ":2" {
		t.Error(got)
	}

	// Who does not read is sent away too.
	greedy := secret()
	greedy.SetWriteDeadline(time.Now().Add(30 * time.Second))
	command := strings.Repeat(array("FIRN.NEXT", "photo", "1000"), 100)
	for {
		if _, err := io.WriteString(greedy, command); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Error("it is still there")
			}
			break
		}
	}

	// The end reaches those that wait.
	ended := make(chan error)
	go func() { ended <- w.stop() }()
	if _, err := p.r.ReadByte(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	p.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func tlsConfig() *tls.Config {
	certificates := httptest.NewTLSServer(nil) // for its key alone
	defer certificates.Close()
	return certificates.TLS.Clone()
}

func dialTLS(t *testing.T, w *world) *peer {
	t.Helper()
	c, err := tls.Dial("tcp", w.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return &peer{t, c, bufio.NewReader(c)}
}

// What takes longer than a connection has patience is answered nevertheless: it is the
// source that was slow, and not the peer.
func TestTLSSlowSource(t *testing.T) {
	src := &waiting{let: make(chan struct{})}
	srv, err := server.New(nil, server.Numbers("slow", src, nil))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", tlsConfig())
	if err != nil {
		t.Fatal(err)
	}
	const patience = 200 * time.Millisecond
	p := dialTLS(t, serveOn(t, l, srv, &resp.Options{Patience: patience}))
	p.send("INCR slow\r\n")
	until(t, "the draw", func() bool { return src.asked.Load() == 1 })
	time.Sleep(4 * patience)
	close(src.let)
	if got := p.answer(); got != ":1" {
		t.Error(got)
	}
}
