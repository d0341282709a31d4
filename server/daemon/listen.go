package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/shard/topology"
)

// drain is how long a stop waits for what was read to be answered.
const drain = 5 * time.Second

// bind listens where the plan says. On an error nothing is listened to.
func bind(o *config.ServerOptions) (bound []boundListener, err error) {
	for _, l := range o.Listeners() {
		sock, at, err := listenOn(l.At)
		if err != nil {
			for _, b := range bound {
				b.Close()
			}
			return nil, &ListenError{Listener: l.Flag, At: l.At, Err: err}
		}
		bound = append(bound, boundListener{sock, l.Flag, at})
	}
	return bound, nil
}

// A boundListener is listened to.
type boundListener struct {
	net.Listener
	flag string // which one it is
	at   config.Address
}

// A front answers the connections of all listeners.
type front struct {
	options  *config.ServerOptions
	server   *server.Server
	supplies *atomic.Pointer[supplies]
	sharded  *atomic.Pointer[[]topology.Server]
	keys     *keyring
	log      *slog.Logger
	version  string
	stats    resp.Stats
	answers  httpapi.Stats
	web      []*fewConnections // listeners of HTTP
	reloaded *atomic.Pointer[reloading]

	failed chan error // a listener has failed
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// open answers connections until close.
func (f *front) open(bound []boundListener) error {
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.failed = stop, make(chan error, len(bound))
	all := make([]func(context.Context) error, len(bound))
	for i, b := range bound {
		var err error
		if all[i], err = f.serve(b); err != nil {
			return err
		}
	}
	for i, b := range bound { // after all of them are known: see traffic
		f.done.Go(func() {
			if err := all[i](ctx); err != nil && ctx.Err() == nil {
				f.failed <- &ListenError{Listener: b.flag, At: b.at, Err: err, Running: true}
			}
		})
	}
	return nil
}

// serve returns what answers a listener until its context is done.
func (f *front) serve(b boundListener) (func(context.Context) error, error) {
	secret := f.keys.on() && b.at.Network == "tcp"
	if b.flag == "resp" {
		l := b.Listener
		if secret {
			l = tls.NewListener(l, f.keys.config())
		}
		o := &resp.Options{
			MaxConns: f.options.Connections, Idle: f.options.Idle, Drain: drain, Strings: f.options.Strings,
			Version: f.version, Stats: &f.stats, Logger: f.log,
		}
		return func(ctx context.Context) error { return resp.Serve(ctx, l, f.server, o) }, nil
	}
	h, err := f.handler(b.flag)
	if err != nil {
		return nil, err
	}
	few := &fewConnections{Listener: b.Listener, name: b.flag, most: int64(f.options.Connections), log: f.log}
	f.web = append(f.web, few)
	l := httpapi.Listener(few)
	if secret {
		l = tls.NewListener(l, f.keys.config("h2", "http/1.1"))
	}
	s := httpapi.NewServer(h)
	s.ErrorLog = slog.NewLogLogger(f.log.Handler(), slog.LevelDebug)
	return func(ctx context.Context) error { return serveHTTP(ctx, s, l) }, nil
}

func (f *front) handler(flag string) (http.Handler, error) {
	o := &httpapi.Options{Foreign: f.options.Foreign, Version: f.version, NoMetrics: !f.options.Admin.Off(), Names: f.options.Hosts, Stats: &f.answers, Traffic: f.traffic, Reloaded: f.lastReload}
	handler := httpapi.Handler
	if flag == "admin" {
		handler = httpapi.Admin
	}
	h, err := handler(f.server, o)
	if err != nil || flag == "http" && !f.options.Admin.Off() {
		return h, err // the console is where operators are
	}
	return f.withConsole(h), nil
}

// serveHTTP answers requests until ctx is done, and then those that have begun.
func serveHTTP(ctx context.Context, s *http.Server, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if s.Shutdown(last) != nil {
		s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close stops listening, answers what was read, and returns. It may be called without open.
func (f *front) close() {
	if f.stop == nil {
		return
	}
	f.stop()
	f.done.Wait()
}

// fewConnections is a listener that closes a connection at once where there are as
// many as there may be.
type fewConnections struct {
	net.Listener
	name  string
	most  int64
	now   atomic.Int64
	log   *slog.Logger
	told  time.Time // when that was logged; of Accept, which one goroutine calls, as is since
	since uint64    // how many were refused since then

	accepted, refused atomic.Uint64
}

func (l *fewConnections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.accepted.Add(1)
		if l.now.Add(1) <= l.most {
			return &countedConn{Conn: c, of: l}, nil
		}
		l.now.Add(-1)
		l.refused.Add(1)
		c.Close()
		l.since++
		if now := time.Now(); now.Sub(l.told) > 10*time.Second {
			l.log.Warn("connections are refused: there are as many as limits.connections allows", "listener", l.name, "limit", l.most, "refused", l.since)
			l.told, l.since = now, 0
		}
	}
}

type countedConn struct {
	net.Conn
	of   *fewConnections
	once sync.Once
}

// CloseWrite is what net/http asks for where a client goes on sending.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.now.Add(-1) })
	return c.Conn.Close()
}

// listen listens there. The address it returns is the real one, where port 0 was
// asked for.
func listenOn(a config.Address) (net.Listener, config.Address, error) {
	if a.Network == "unix" {
		if err := clearSocket(a.At); err != nil {
			return nil, a, err
		}
	}
	l, err := net.Listen(a.Network, a.At)
	if err != nil {
		return nil, a, err
	}
	if a.Network == "unix" {
		// Whoever may use the group's files may use it.
		err = os.Chmod(a.At, 0o660)
	} else {
		a.At = l.Addr().String()
	}
	if err != nil {
		l.Close()
		return nil, a, err
	}
	return l, a, nil
}

// clearSocket removes the socket of a process that was killed. One that somebody
// answers on stays, and so does anything that is not a socket.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there, and is not a socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("another process listens on %s", path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return err
}
