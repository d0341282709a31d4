package open

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store/zookeeper"
)

var zooKeeper = kind{
	form:    "zk://[USER:PASSWORD@]HOST[:PORT],.../ROOT",
	options: append([]string{"session_timeout"}, tlsOptions...),
	parse:   parseZooKeeper,
}

// zkSession is how long a session outlives its connection. Nothing depends on a
// session; a third of it is how long a server may be silent before another is tried.
const zkSession = 10 * time.Second

func parseZooKeeper(a *address) (opener, error) {
	session, err := a.duration("session_timeout", zkSession)
	if err != nil {
		return nil, err
	}
	files, err := a.takeTLS(a.scheme == "zks", "zk")
	if err != nil {
		return nil, err
	}
	if a.known && (a.user == "" || strings.Contains(a.user, ":")) {
		return nil, errors.New("a digest is made of a user, without a colon, and a password")
	}
	if err := checkRoot(a.path); err != nil {
		return nil, err
	}
	return func() (*Store, error) {
		config, err := files.config()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		d := &zkDialer{config: config, silence: session * 2 / 3, ctx: ctx, cancel: cancel}
		conn, events, err := zk.Connect(a.addresses("2181"), session, zk.WithDialer(d.dial), zk.WithHostProvider(&zkHosts{}), zk.WithLogger(silent{}))
		if err != nil {
			cancel()
			return nil, err
		}
		o := zookeeper.Options{Root: strings.TrimRight(a.path, "/"), Unreachable: d.trouble}
		if a.known {
			o.Digest = a.user + ":" + a.password
		}
		s := zookeeper.New(conn, &o)
		return &Store{Store: s, init: s.Init, close: func() error {
			conn.Close()
			d.close()
			for range events { // until the client's goroutines have ended
			}
			return nil
		}}, nil
	}, nil
}

// checkRoot returns what is wrong with the path of a node.
func checkRoot(path string) error {
	path = strings.TrimRight(path, "/")
	if path == "" {
		return nil
	}
	parts := strings.Split(path[1:], "/")
	if slices.Contains(parts, "") || slices.Contains(parts, ".") || slices.Contains(parts, "..") || parts[0] == "zookeeper" {
		return fmt.Errorf("%s is no path of a node of one's own", path)
	}
	return nil
}

// silent is a client's logger that says nothing: its errors come back from calls.
type silent struct{}

func (silent) Printf(string, ...any) {}

// zkHosts are the servers of one client by their names, one after the other. The
// client's own looks names up once, and then knows addresses only: a server that
// has moved is never found again, and a certificate has no name to be compared with.
type zkHosts struct {
	mu    sync.Mutex
	names []string
	next  int
	tried int // since the last connection
}

// Init implements [zk.HostProvider].
func (h *zkHosts) Init(names []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = slices.Clone(names)
	rand.Shuffle(len(h.names), func(i, j int) { h.names[i], h.names[j] = h.names[j], h.names[i] })
	return nil
}

// Len implements [zk.HostProvider].
func (h *zkHosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names)
}

// Next implements [zk.HostProvider]. all: each was tried in vain.
func (h *zkHosts) Next() (name string, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, all = h.names[h.next], h.tried == len(h.names)
	if all {
		h.tried = 0
	}
	h.next, h.tried = (h.next+1)%len(h.names), h.tried+1
	return name, all
}

// Connected implements [zk.HostProvider].
func (h *zkHosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}

// A zkDialer makes the connections of one client, and ends the last one: the
// client itself waits up to ten times the session timeout for a server that took
// the connection and says nothing.
type zkDialer struct {
	config  *tls.Config
	silence time.Duration
	ctx     context.Context // ends with the client
	cancel  context.CancelFunc

	mu     sync.Mutex
	turn   int // of the addresses of one name
	last   net.Conn
	failed error // of the last attempt; nil if it succeeded
}

// dial connects to a server by its name. Each time it begins with another of the
// name's addresses, because a server that takes connections may not serve.
func (d *zkDialer) dial(network, name string, timeout time.Duration) (net.Conn, error) {
	d.mu.Lock()
	turn := d.turn
	d.turn++
	d.mu.Unlock()
	conn, err := d.reach(network, name, timeout, turn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.ctx.Err() != nil {
		conn.Close()
		err = net.ErrClosed
	}
	if d.failed = err; err != nil {
		return nil, err
	}
	d.last = &zkConn{Conn: conn, silence: d.silence, stranger: func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failed = errNotZooKeeper
	}}
	return d.last, nil
}

// reach connects to the first address that can be reached.
func (d *zkDialer) reach(network, name string, timeout time.Duration, turn int) (net.Conn, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(d.ctx, dialPatience)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		var conn net.Conn
		if conn, err = d.connect(network, net.JoinHostPort(addrs[(turn+i)%len(addrs)], port), host, timeout); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// connect connects to an address, with TLS if that is asked for.
func (d *zkDialer) connect(network, addr, host string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	if d.config == nil {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	config := d.config.Clone()
	config.ServerName = cmp.Or(config.ServerName, host)
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, addr)
}

// trouble is why the last attempt to connect failed, nil if it did not.
func (d *zkDialer) trouble() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *zkDialer) close() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		d.last.Close()
	}
}

// errNotZooKeeper says that another service listens at the address.
var errNotZooKeeper = errors.New("what answers is not ZooKeeper; check the host and the port")

// mostGreeting is how long the first answer of a server may be. ZooKeeper's has about 40 bytes.
const mostGreeting = 1 << 16

// A zkConn is a connection to a server. It waits for a read no longer than silence. The client makes room
// for as many bytes as an answer says that it has, which is a gigabyte where HTTP answers: a server whose first
// answer is that long is none of ZooKeeper, and stranger is called.
type zkConn struct {
	net.Conn
	silence  time.Duration
	stranger func()
	length   []byte // the first four bytes
}

func (c *zkConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if missing := 4 - len(c.length); missing > 0 {
		c.length = append(c.length, p[:min(n, missing)]...)
		if len(c.length) == 4 && binary.BigEndian.Uint32(c.length) > mostGreeting {
			c.stranger()
			return 0, errNotZooKeeper
		}
	}
	return n, err
}

func (c *zkConn) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(c.silence); t.After(most) {
		t = most
	}
	return c.Conn.SetReadDeadline(t)
}
