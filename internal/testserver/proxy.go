package testserver

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Proxy passes TCP connections on to a server and does to them what networks
// do. Its methods may be called at any time.
type Proxy struct {
	addr string

	mu          sync.Mutex
	target      string
	listener    net.Listener // nil while connections are refused
	pairs       map[*pair]struct{}
	open        chan struct{} // closed unless it hangs
	delay       time.Duration
	lostRequest int // how many are to be lost
	lostReply   int
	closed      bool
	running     sync.WaitGroup
}

// A pair is a connection of a client and the one behind it.
type pair struct {
	client, server net.Conn
	ended          chan struct{}
	end            func()
	loseReply      bool // under the proxy's mu
}

// NewProxy starts a proxy in front of target, a host:port. It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{target: target, pairs: map[*pair]struct{}{}, open: make(chan struct{})}
	close(p.open)
	for try := 1; ; try++ {
		port, err := freePort(nil)
		if err == nil {
			p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			err = p.listen()
		}
		if err == nil {
			break
		}
		if try == 5 {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(p.Close)
	return p
}

// Addr returns host:port.
func (p *Proxy) Addr() string { return p.addr }

// Close ends all connections and the proxy, and waits for its goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.refuse()
	p.Cut()
	p.running.Wait()
}

// Target passes the connections that come from now on to another server.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Cut ends all connections there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.end()
	}
}

// Refuse has new connections refused, as where nothing listens, or no more. Those
// there are go on: Cut ends them.
func (p *Proxy) Refuse(refuse bool) {
	if refuse {
		p.refuse()
		return
	}
	// The port is out of the range of outgoing connections, so it is hardly ever
	// taken meanwhile.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := p.listen()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			panic(err)
		}
	}
}

// Hang has nothing go through, in either direction, while all connections stay and
// new ones are accepted; or lets all go on, what came meanwhile included.
func (p *Proxy) Hang(hang bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if hang {
			p.open = make(chan struct{})
		}
	default:
		if !hang {
			close(p.open)
		}
	}
}

// Delay has everything wait for d, in each direction: a round trip takes 2d longer.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// LoseRequests has each of the next n things that a client sends not reach the
// server, and its connection end.
func (p *Proxy) LoseRequests(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lostRequest = n
}

// LoseReplies has each of the next n things that a client sends reach the server;
// but what that answers is lost, and the connection ends.
func (p *Proxy) LoseReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lostReply = n
}

func (p *Proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	l, err := net.Listen("tcp4", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.accept(c, l)
		}
	}()
	return nil
}

// accept passes on one connection of a listener. One that was accepted just before
// connections were refused is refused too: Cut may have been called since.
func (p *Proxy) accept(client net.Conn, from net.Listener) {
	c := &pair{client: client, ended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener != from {
		client.Close()
		return
	}
	var once sync.Once
	c.end = func() { // under mu, as it reads server
		once.Do(func() {
			close(c.ended)
			c.client.Close()
			if c.server != nil {
				c.server.Close()
			}
			delete(p.pairs, c)
		})
	}
	p.pairs[c] = struct{}{}
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		if p.connect(c) {
			p.running.Add(1)
			go func() {
				defer p.running.Done()
				p.pump(c, c.server, c.client, p.reply)
			}()
			p.pump(c, c.client, c.server, p.request)
		}
	}()
}

// connect reaches the server for c.
func (p *Proxy) connect(c *pair) bool {
	if !p.pass(c) {
		return false
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-c.ended:
		if err == nil {
			server.Close()
		}
		return false
	default:
	}
	if err != nil {
		c.end()
		return false
	}
	c.server = server
	return true
}

// pump passes on what comes from one side until either ends, which ends both.
// Each piece is first shown to see, which reports whether it goes through.
func (p *Proxy) pump(c *pair, from, to net.Conn, see func(*pair) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.pass(c) && see(c) {
			if _, werr := to.Write(buf[:n]); werr == nil && err == nil {
				continue
			}
		}
		p.mu.Lock()
		c.end()
		p.mu.Unlock()
		return
	}
}

// pass waits as Hang and Delay say. It reports false if the connection ends.
func (p *Proxy) pass(c *pair) bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.ended:
			return false
		}
	}
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-c.ended:
		return false
	}
}

// request reports whether what a client sent goes through.
func (p *Proxy) request(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lostRequest > 0 {
		p.lostRequest--
		return false
	}
	if p.lostReply > 0 && !c.loseReply {
		p.lostReply--
		c.loseReply = true
	}
	return true
}

// reply reports whether what a server sent goes through.
func (p *Proxy) reply(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !c.loseReply
}
