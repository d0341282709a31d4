package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server of real series on a listener of its own.
type world struct {
	srv   *server.Server
	addr  string
	stats *resp.Stats
	stop  func() error // ends Serve; may be called again
}

// serve starts a server of the series photo, a flake, and orders, a sequence, and those
// given.
func serve(tb testing.TB, so *server.Options, o *resp.Options, more ...*server.Series) *world {
	tb.Helper()
	srv, err := server.New(so, append(more, flake(tb, "photo"), numbers(tb, "orders", nil))...)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return serveOn(tb, l, srv, o)
}

func serveOn(tb testing.TB, l net.Listener, srv *server.Server, o *resp.Options) *world {
	tb.Helper()
	if o == nil {
		o = &resp.Options{}
	}
	if o.Stats == nil {
		o.Stats = new(resp.Stats)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = resp.Serve(ctx, l, srv, o)
	}()
	w := &world{srv: srv, addr: l.Addr().String(), stats: o.Stats}
	w.stop = func() error {
		cancel()
		select {
		case <-done:
			return err
		case <-time.After(30 * time.Second):
			return fmt.Errorf("Serve goes on")
		}
	}
	tb.Cleanup(func() {
		if err := w.stop(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

func flake(tb testing.TB, name string) *server.Series {
	tb.Helper()
	l, err := lease.Open(tb.Context(), memory.New(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	return server.Numbers(name, l, &server.SeriesOptions{Layout: l.State().Layout})
}

func numbers(tb testing.TB, name string, o *sequence.Options) *server.Series {
	tb.Helper()
	st := memory.New()
	if _, err := sequence.Create(tb.Context(), st, name, o); err != nil {
		tb.Fatal(err)
	}
	s, err := sequence.Open(tb.Context(), st, name, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	so := &server.SeriesOptions{Reserve: s.Reserve}
	if o != nil {
		so.Step = o.Increment
	}
	return server.Numbers(name, s, so)
}

// A peer is a connection that is spoken to byte by byte.
type peer struct {
	tb testing.TB
	net.Conn
	r *bufio.Reader
}

func dial(tb testing.TB, w *world) *peer {
	tb.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return &peer{tb, c, bufio.NewReader(c)}
}

func (p *peer) send(text string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.Conn, text); err != nil {
		p.tb.Fatal(err)
	}
}

// answer reads one answer and writes it in one line: arrays in brackets, maps in braces.
func (p *peer) answer() string {
	p.tb.Helper()
	text, err := readAnswer(p.r)
	if err != nil {
		p.tb.Fatal(err)
	}
	return text
}

// closed waits until the server has closed the connection.
func (p *peer) closed() {
	p.tb.Helper()
	if n, err := io.Copy(io.Discard, p.r); err != nil && !strings.Contains(err.Error(), "reset by peer") {
		p.tb.Fatalf("not closed, after %d bytes: %v", n, err)
	}
}

func (p *peer) do(words ...string) string {
	p.tb.Helper()
	p.send(array(words...))
	return p.answer()
}

func array(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(line, "\r\n") || len(line) < 3 {
		return "", fmt.Errorf("line %q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	if strings.IndexByte("+-:_", kind) >= 0 {
		return line[:len(line)-2], nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return "", fmt.Errorf("line %q", line)
	}
	switch kind {
	case '$', '=':
		if n < 0 {
			return "nil", nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if string(b[n:]) != "\r\n" {
			return "", fmt.Errorf("no end of line behind %q", b)
		}
		return strconv.Quote(string(b[:n])), nil
	case '*', '~', '%':
		pair := strings.IndexByte("*~%", kind) == 2
		if pair {
			n *= 2
		}
		all := make([]string, n)
		for i := range all {
			if all[i], err = readAnswer(r); err != nil {
				return "", err
			}
		}
		if pair {
			return "{" + strings.Join(all, " ") + "}", nil
		}
		return "[" + strings.Join(all, " ") + "]", nil
	}
	return "", fmt.Errorf("line %q", line)
}
