// Package resp answers the series of a server over the protocol of Redis, versions
// 2 and 3: INCR gives the next id, to any Redis client.
//
//	l, err := net.Listen("tcp", "127.0.0.1:6380")
//	...
//	err = resp.Serve(ctx, l, srv, nil)
//
// A connection has a goroutine. What one read brings is parsed in place and
// answered with one write; draws of one series that follow one another are one
// draw. The memory of a connection is bounded, whatever it sends and however
// slowly it reads; an idle one holds no buffer beyond 1 KB.
package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/server"
)

// Defaults of Options.
const (
	DefaultMaxConns = 10_000
	DefaultIdle     = time.Hour
	DefaultPatience = 30 * time.Second
	DefaultDrain    = 5 * time.Second
)

// Bounds that are not options.
const (
	smallBuffer = 1 << 10   // of input, that each connection has
	largeBuffer = 16 << 10  // of input, and so the longest command
	strangers   = 4 << 10   // the longest command before a token
	flushAt     = 64 << 10  // of output
	backlogEach = 32 << 20  // of output that a connection has asked for and not read
	backlogWait = 96 << 20  // of all of them together, when those with more than flushAt wait
	backlogAll  = 128 << 20 // and when they are dropped
	maxArgs     = 1024      // of a command
	maxFailures = 5         // of AUTH, on a connection

	// A connection that is in use is looked at so often. Deadlines are set then, and
	// not for each command.
	interval = 2 * time.Second
)

// Options: nil, or any zero field, takes the default.
type Options struct {
	// MaxConns is how many connections there are at most; 10,000.
	MaxConns int
	// Idle is how long a connection may send nothing; 1 h. That is more than the
	// pools of clients keep one.
	Idle time.Duration
	// Patience is how long a connection may take over one thing: a TLS handshake, its
	// token, the rest of a command that it has begun, reading 64 KB of answers; 30 s.
	Patience time.Duration
	// Drain is how long connections have to take their answers when Serve ends; 5 s.
	Drain time.Duration

	// Strings makes INCR and INCRBY answer numbers above 2^53-1 as strings to
	// everybody, and not only to clients in JavaScript and to those who ask for it.
	Strings bool

	// Version is what HELLO and INFO say; "0".
	Version string
	// Stats counts, if not nil.
	Stats *Stats
	// Logger; slog.Default(). Neither ids nor tokens are logged.
	Logger *slog.Logger
}

// Stats are what a listener counts. The zero Stats are ready to be used, and may be
// shared by several listeners.
type Stats struct {
	Conns    atomic.Int64  // that are open
	Accepted atomic.Uint64 // connections
	Rejected atomic.Uint64 // connections, by MaxConns
	Dropped  atomic.Uint64 // connections, for what they sent or did not read
	Commands atomic.Uint64
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.MaxConns == 0 {
		d.MaxConns = DefaultMaxConns
	}
	for _, f := range []struct {
		value *time.Duration
		least time.Duration
	}{{&d.Idle, DefaultIdle}, {&d.Patience, DefaultPatience}, {&d.Drain, DefaultDrain}} {
		if *f.value == 0 {
			*f.value = f.least
		}
	}
	if d.Version == "" {
		d.Version = "0"
	}
	if d.Stats == nil {
		d.Stats = new(Stats)
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// A listener is what the connections of one Serve share.
type listener struct {
	Options
	server   *server.Server
	started  time.Time
	interval time.Duration   // between looks at a connection
	ctx      context.Context // of draws; done when the time to drain is over

	told  time.Time // when it was logged that there are too many; of begin, as is since
	since uint64    // connections that were refused since then

	lastID   atomic.Uint64
	backlog  atomic.Int64 // bytes of all connections
	refusing chan struct{}

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool
	all      sync.WaitGroup
}

// Serve answers the connections of l until ctx is done, or l fails. Then it closes
// l, answers what was read, closes the connections and returns: nil, or why l failed.
// It never takes longer for that than Options.Drain.
func Serve(ctx context.Context, l net.Listener, srv *server.Server, o *Options) error {
	draws, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &listener{
		Options: o.withDefaults(), server: srv, started: time.Now(), ctx: draws,
		conns: map[*conn]struct{}{}, refusing: make(chan struct{}, 64),
	}
	s.interval = min(interval, s.Idle, s.Patience)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err := s.accept(ctx, l)
	l.Close()
	s.drain(cancel)
	return err
}

// accept starts connections until l is closed.
func (s *listener) accept(ctx context.Context, l net.Listener) error {
	const longest = time.Second
	pause := time.Millisecond
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = time.Millisecond
			s.begin(nc)
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		// Too many open files, most likely: it passes.
		s.Logger.Warn("no connection can be accepted", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// begin starts a connection, or says that there are too many.
func (s *listener) begin(nc net.Conn) {
	s.Stats.Accepted.Add(1)
	c := &conn{listener: s, nc: nc, id: s.lastID.Add(1), began: time.Now(), protocol: 2}
	s.mu.Lock()
	full := len(s.conns) >= s.MaxConns
	if !full && !s.draining {
		s.conns[c] = struct{}{}
		s.all.Add(1)
	}
	draining := s.draining
	s.mu.Unlock()
	switch {
	case draining:
		nc.Close()
	case full:
		s.Stats.Rejected.Add(1)
		s.since++
		if c.began.Sub(s.told) > 10*time.Second {
			s.Logger.Warn("connections are refused: there are as many as limits.connections allows", "listener", "resp", "limit", s.MaxConns, "refused", s.since)
			s.told, s.since = c.began, 0
		}
		s.refuse(nc)
	default:
		s.Stats.Conns.Add(1)
		go c.run()
	}
}

// refuse tells a connection that there are too many. In a flood it only closes.
func (s *listener) refuse(nc net.Conn) {
	if _, secret := nc.(*tls.Conn); secret {
		nc.Close() // it would cost a handshake to say so
		return
	}
	select {
	case s.refusing <- struct{}{}:
	default:
		nc.Close()
		return
	}
	go func() {
		nc.SetDeadline(time.Now().Add(time.Second))
		nc.Write([]byte("-ERR max number of clients reached\r\n"))
		farewell(nc)
		<-s.refusing
	}()
}

// end forgets a connection.
func (s *listener) end(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.Stats.Conns.Add(-1)
	s.all.Done()
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// drain ends all connections: those that are idle at once, others when they have
// their answers, and all when the time is over.
func (s *listener) drain(cancel func()) {
	s.mu.Lock()
	s.draining = true
	for c := range s.conns {
		c.draining.Store(true)
		c.nc.SetReadDeadline(past)
	}
	s.mu.Unlock()
	late := time.AfterFunc(s.Drain, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			cut(c.nc)
		}
	})
	defer late.Stop()
	s.all.Wait()
}

// farewell closes a connection in such a way that the peer gets what was written:
// a socket that is closed with input unread takes its output with it.
func farewell(nc net.Conn) {
	defer nc.Close()
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	nc.SetReadDeadline(time.Now().Add(time.Second))
	rest := larges.Get().(*[largeBuffer]byte)
	defer larges.Put(rest)
	for {
		if _, err := nc.Read(rest[:]); err != nil {
			return
		}
	}
}

// cut closes a connection and waits for nothing: TLS would say goodbye first, for up
// to 5 s where nobody reads.
func cut(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}
