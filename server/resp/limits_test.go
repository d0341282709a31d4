package resp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

// patience is short enough for tests to wait for, several times over.
const patience = 300 * time.Millisecond

// until polls.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// What is not the protocol is answered with an error and the end of the connection,
// after the answers of what came before it.
func TestGarbage(t *testing.T) {
	w := serve(t, nil, nil)
	for _, garbage := range []string{
		"*1x\r\n", "*\r\n", "*x\r\n", "*--1\r\n", "*1\n$4\r\nPING\r\n", "*99999999999\r\n", "*1025\r\n",
		"*1\r\nPING\r\n", "*1\r\n:4\r\n", "*1\r\n$-1\r\n", "*1\r\n$x\r\n", "*1\r\n$16384\r\n", "*1\r\n$999999999\r\n",
		"*1\r\n$4\r\nPINGPONG\r\n", "*2\r\n$4\r\nPING\r\n$16370\r\n",
		strings.Repeat("x", 20_000), strings.Repeat("x", 400_000), "*3\r\n" + strings.Repeat("$8000\r\n"+strings.Repeat("x", 8000)+"\r\n", 3),
	} {
		p := dial(t, w)
		p.send("INCR photo\r\n" + garbage)
		if got := p.answer(); !strings.HasPrefix(got, ":") {
			t.Errorf("before %.20q: %s", garbage, got)
		}
		if got := p.answer(); !strings.HasPrefix(got, "-ERR Protocol error: ") {
			t.Errorf("%.20q: %s", garbage, got)
		}
		p.closed()
	}
	// Nothing, and less than nothing, is no command.
	p := dial(t, w)
	p.send("*0\r\n*-1\r\n\r\nPING\r\n")
	if got := p.answer(); got != "+PONG" {
		t.Error(got)
	}
	until(t, "all of them dropped", func() bool { return w.stats.Dropped.Load() == 18 })
}

// Before it has said who it is, a connection has little room.
func TestStranger(t *testing.T) {
	w := serve(t, &server.Options{Tokens: []server.Token{{Name: "a", Hash: server.HashToken("a")}}}, &resp.Options{Patience: patience})
	p := dial(t, w)
	p.send("*2\r\n$4\r\nPING\r\n$5000\r\n")
	if got := p.answer(); !strings.HasPrefix(got, "-ERR Protocol error: ") {
		t.Error(got)
	}
	p.closed()
	dial(t, w).closed() // and little time
	knocking := dial(t, w)
	stop := make(chan struct{})
	go func() { // whatever it sends
		defer close(stop)
		for {
			if _, err := io.WriteString(knocking, "PING\r\n\r\n"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	<-stop
	p = dial(t, w)
	p.do("AUTH", "a")
	if got := p.do("PING", strings.Repeat("x", 5000)); len(got) != 5002 {
		t.Error(got)
	}
}

func TestMaxConns(t *testing.T) {
	var log bytes.Buffer
	w := serve(t, nil, &resp.Options{MaxConns: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	a, b := dial(t, w), dial(t, w)
	a.do("PING")
	b.do("PING")
	for range 100 { // a flood
		c := dial(t, w)
		if got, err := readAnswer(c.r); err != nil || got != "-ERR max number of clients reached" {
			t.Fatal(got, err)
		}
		c.closed()
		c.Close()
	}
	a.Close()
	until(t, "room for another", func() bool {
		got, err := readAnswer(sendPing(t, w).r)
		return err == nil && got == "+PONG"
	})
	if got := b.do("PING"); got != "+PONG" {
		t.Error(got)
	}
	if n := w.stats.Rejected.Load(); n < 100 {
		t.Errorf("%d rejected", n)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "listener=resp limit=2 refused="); n == 0 || n > 10 {
		t.Errorf("an operator is told of it %d times", n)
	}
}

func sendPing(t *testing.T, w *world) *peer {
	p := dial(t, w)
	io.WriteString(p.Conn, "PING\r\n")
	return p
}

// Who begins a command and does not end it is sent away, however busy it looks. Who
// only waits is not.
func TestHalfCommand(t *testing.T) {
	w := serve(t, nil, &resp.Options{Patience: patience})
	idle, half, drip := dial(t, w), dial(t, w), dial(t, w)
	idle.do("PING")
	half.send("*2\r\n$4\r\nPING\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.WriteString(drip, "*1\r\n$9999\r\n")
		for {
			if _, err := io.WriteString(drip, "x"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	half.closed()
	<-done
	if got := idle.do("PING"); got != "+PONG" {
		t.Error(got)
	}
}

func TestIdle(t *testing.T) {
	w := serve(t, nil, &resp.Options{Idle: patience})
	p := dial(t, w)
	p.do("PING")
	p.closed()
	dial(t, w).closed() // which has never said anything
}

// waiting gives ids when it is let.
type waiting struct {
	upward
	asked atomic.Int64
	let   chan struct{}
}

func (s *waiting) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	s.asked.Add(1)
	select {
	case <-s.let:
		return s.upward.Append(ctx, dst, n)
	case <-ctx.Done():
		return dst, ctx.Err()
	}
}

// The end: what was read is answered, and then the connection ends.
func TestDrain(t *testing.T) {
	src := &waiting{let: make(chan struct{})}
	w := serve(t, nil, nil, server.Numbers("slow", src, nil))
	idle, busy := dial(t, w), dial(t, w)
	idle.do("PING")
	busy.send("INCR slow\r\nINCR orders\r\n")
	until(t, "the draw", func() bool { return src.asked.Load() == 1 })
	ended := make(chan error)
	go func() { ended <- w.stop() }()
	idle.closed()
	select {
	case err := <-ended:
		t.Fatalf("Serve has not waited for an answer: %v", err)
	default:
	}
	if c, err := net.Dial("tcp", w.addr); err == nil {
		c.Close()
		t.Error("a connection was accepted at the end")
	}
	close(src.let)
	for _, want := range []string{":1", ":1"} {
		if got := busy.answer(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	busy.closed()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The end does not wait for who cannot be answered.
func TestDrainEnds(t *testing.T) {
	src := &waiting{let: make(chan struct{})}
	w := serve(t, nil, &resp.Options{Drain: 100 * time.Millisecond}, server.Numbers("slow", src, nil))
	p := dial(t, w)
	p.send("INCR slow\r\n")
	until(t, "the draw", func() bool { return src.asked.Load() == 1 })
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	p.closed()
}

// Connections that come and go, many at a time, while others are served.
func TestFlood(t *testing.T) {
	w := serve(t, nil, &resp.Options{MaxConns: 50})
	steady := dial(t, w)
	steady.do("PING")
	var floods sync.WaitGroup
	for range 8 {
		floods.Go(func() {
			for i := range 100 {
				c, err := net.Dial("tcp", w.addr)
				if err != nil {
					t.Error(err)
					return
				}
				switch i % 3 {
				case 0:
					io.WriteString(c, "INCR photo\r\nINC")
				case 1:
					io.WriteString(c, "\x16\x03\x01\x00\xff\x01\n")
				}
				c.Close()
			}
		})
	}
	for i := range 500 {
		if got := steady.do("INCR", "orders"); got != fmt.Sprintf(":%d", i+1) {
			t.Fatalf("%d: %s", i, got)
		}
	}
	floods.Wait()
	until(t, "they are gone", func() bool { return w.stats.Conns.Load() == 1 })
}

// A listener that fails for a moment is asked again; one that is closed by others is
// an error.
func TestListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(nil, numbers(t, "orders", nil))
	if err != nil {
		t.Fatal(err)
	}
	failing := &failing{Listener: l}
	failing.times.Store(3)
	w := serveOn(t, failing, srv, nil)
	if got := dial(t, w).do("INCR", "orders"); got != ":1" {
		t.Error(got)
	}
}

func TestListenerClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := resp.Serve(t.Context(), l, srv, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}

type failing struct {
	net.Listener
	times atomic.Int64
}

func (l *failing) Accept() (net.Conn, error) {
	if l.times.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

// Nor for who does not read.
func TestDrainUnread(t *testing.T) {
	w := serve(t, nil, &resp.Options{Drain: 100 * time.Millisecond, Patience: time.Minute}, server.Numbers("fast", &upward{}, nil))
	p := dial(t, w)
	p.send(strings.Repeat(array("FIRN.NEXT", "fast", "10000"), 100))
	p.answer()
	start := time.Now()
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	t.Logf("it took %s", time.Since(start))
}

// Who goes on sending at the end has every answer that was written before.
func TestDrainSending(t *testing.T) {
	w := serve(t, nil, nil, server.Numbers("fast", &upward{}, nil))
	p := dial(t, w)
	p.send(strings.Repeat(array("FIRN.NEXT", "fast", "10000"), 20))
	p.answer()
	ended := make(chan error)
	go func() { ended <- w.stop() }()
	more := strings.Repeat(array("PING"), 5000)
	for range 40 { // more than sockets hold
		if _, err := io.WriteString(p, more); err != nil {
			break
		}
	}
	for range 19 {
		p.answer()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
