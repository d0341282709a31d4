package resp

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
)

// What a lost connection has left unanswered is not answered to the next one.
func TestRelease(t *testing.T) {
	w := &work{}
	w.out = append(w.out, "+OK\r\n"...)
	w.group.asked = append(w.group.asked, asked{values: 3})
	w.group.values = 3
	w.release()
	if len(w.out) != 0 || len(w.group.asked) != 0 || w.group.values != 0 {
		t.Errorf("%+v", w)
	}
}

// newConn returns a connection that nobody runs, and its other end.
func newConn(t *testing.T) (*conn, net.Conn) {
	srv, err := server.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	nc, peer := net.Pipe()
	t.Cleanup(func() { nc.Close(); peer.Close() })
	s := &listener{Options: (&Options{}).withDefaults(), server: srv, ctx: t.Context(), interval: interval}
	c := &conn{listener: s, nc: nc, began: time.Now()}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	return c, peer
}

// How long a command may take counts from its beginning, however long nothing came
// before; and not again from each of its parts.
func TestLateCommand(t *testing.T) {
	c, peer := newConn(t)
	rest := func() {
		c.active = time.Now().Add(-2 * c.Patience)
		if err := c.check(); err != nil || !c.resting {
			t.Fatalf("at rest: %v, %v", c.resting, err)
		}
	}
	fill := func(text string) {
		go peer.Write([]byte(text))
		if err := c.fill(); err != nil {
			t.Fatal(err)
		}
	}
	rest()
	fill("*1\r\n")
	if err := c.check(); err != nil {
		t.Errorf("just begun: %v", err)
	}
	c.resting = true
	c.active = time.Now().Add(-2 * c.Patience)
	fill("$4\r\n")
	if err := c.check(); !errors.Is(err, errIdle) {
		t.Errorf("begun long ago: %v", err)
	}
}

// Answers that nobody reads have a bound for all connections together: beyond it, who
// asks for more is dropped, and holds nothing.
func TestBacklog(t *testing.T) {
	c, _ := newConn(t)
	c.work = &work{}
	c.backlog.Store(backlogAll - 100)
	c.out = make([]byte, 101)
	c.outbox.writing = true // to one who does not read
	if err := c.send(); !errors.Is(err, errBacklog) {
		t.Errorf("beyond the bound: %v", err)
	}
	if c.backlog.Load() != backlogAll-100 || c.out != nil || len(c.outbox.queue) != 0 {
		t.Errorf("%d, %+v", c.backlog.Load(), c.work)
	}
}
