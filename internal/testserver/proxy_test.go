package testserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
)

// An echo answers each line with the line, and counts them.
type echo struct {
	addr  string
	lines atomic.Int64
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	e := &echo{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					e.lines.Add(1)
					if _, err := io.WriteString(c, line); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return e
}

// A caller is a client of the echo.
type caller struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *caller {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return &caller{c, bufio.NewReader(c)}
}

func (c *caller) call(text string, within time.Duration) error {
	c.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c, text+"\n"); err != nil {
		return err
	}
	line, err := c.r.ReadString('\n')
	if err == nil && line != text+"\n" {
		err = fmt.Errorf("%q came back", line)
	}
	return err
}

func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestProxy(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	const soon, long = 100 * time.Millisecond, 10 * time.Second
	for _, tt := range []struct {
		name string
		test func(t *testing.T, e *echo, p *testserver.Proxy, c *caller)
	}{
		{"cut", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Cut()
			if err := c.call("a", long); !cut(err) {
				t.Errorf("error %v on a connection that was cut", err)
			}
			must(t, dial(t, p.Addr()).call("b", long))
		}},
		{"refuse", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Refuse(true)
			p.Refuse(true)
			must(t, c.call("a", long)) // it was there before
			if c, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v, %v for a new connection", c, err)
			}
			p.Refuse(false)
			p.Refuse(false)
			must(t, dial(t, p.Addr()).call("b", long))
		}},
		{"hang", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Hang(true)
			p.Hang(true)
			before := e.lines.Load()
			if err := c.call("a", soon); !timedOut(err) {
				t.Errorf("error %v on a connection that hangs", err)
			}
			d := dial(t, p.Addr()) // accepted
			if err := d.call("b", soon); !timedOut(err) {
				t.Errorf("error %v on a new connection that hangs", err)
			}
			if got := e.lines.Load(); got != before {
				t.Errorf("%d lines went through", got-before)
			}
			p.Hang(false)
			for _, c := range []*caller{c, d} { // what was sent comes through
				c.SetDeadline(time.Now().Add(long))
				if _, err := c.r.ReadString('\n'); err != nil {
					t.Error(err)
				}
			}
		}},
		{"cut while it hangs", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Hang(true)
			if err := c.call("a", soon); !timedOut(err) {
				t.Errorf("error %v on a connection that hangs", err)
			}
			p.Cut()
			c.SetDeadline(time.Now().Add(long))
			if _, err := c.r.ReadString('\n'); !cut(err) {
				t.Errorf("error %v on a connection that was cut", err)
			}
		}},
		{"delay", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Delay(soon)
			start := time.Now()
			must(t, c.call("a", long))
			if took := time.Since(start); took < 2*soon {
				t.Errorf("a round trip takes %s, want at least %s", took, 2*soon)
			}
			p.Delay(0)
		}},
		{"lose requests", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.LoseRequests(1)
			before := e.lines.Load()
			if err := c.call("a", long); !cut(err) {
				t.Errorf("error %v for a lost request", err)
			}
			if got := e.lines.Load(); got != before {
				t.Errorf("the server got %d requests that were lost", got-before)
			}
			must(t, dial(t, p.Addr()).call("b", long))
		}},
		{"lose replies", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			d := dial(t, p.Addr())
			must(t, d.call("x", long))
			before := e.lines.Load()
			p.LoseReplies(2)
			for _, c := range []*caller{c, d} {
				if err := c.call("a", long); !cut(err) {
					t.Errorf("error %v for a lost reply", err)
				}
			}
			if got := e.lines.Load(); got != before+2 {
				t.Errorf("the server got %d requests whose reply was lost, want 2", got-before)
			}
			must(t, dial(t, p.Addr()).call("b", long))
		}},
		{"target", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			other := startEcho(t)
			p.Target(other.addr)
			must(t, c.call("a", long)) // stays where it is
			must(t, dial(t, p.Addr()).call("b", long))
			if got := other.lines.Load(); got != 1 {
				t.Errorf("the new target got %d lines, want 1", got)
			}
		}},
		{"nobody behind", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			p.Target("127.0.0.1:1")
			if err := dial(t, p.Addr()).call("a", long); !cut(err) {
				t.Errorf("error %v with nobody behind", err)
			}
		}},
		{"large", func(t *testing.T, e *echo, p *testserver.Proxy, c *caller) {
			text := make([]byte, 1<<20)
			for i := range text {
				text[i] = 'a' + byte(i%26)
			}
			must(t, c.call(string(text), long))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := startEcho(t)
			p := testserver.NewProxy(t, e.addr)
			c := dial(t, p.Addr())
			must(t, c.call("hello", long))
			tt.test(t, e, p, c)
		})
	}
}
