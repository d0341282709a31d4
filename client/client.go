// Package client gives ids that a firn server issues, at the price of a counter:
// it fetches blocks of them before they are asked for.
//
//	ids, err := client.Open(ctx, "redis://127.0.0.1:6380", "photo", nil)
//	...
//	defer ids.Close()
//	id, err := ids.Next(ctx)
//
// The address is redis://[:TOKEN@]HOST:PORT[,HOST:PORT...], or rediss:// for TLS, as
// every other client of such a server has it. A socket of this host is unix:PATH, and
// with a token unix://:TOKEN@PATH, with an absolute path. Of several servers one is asked
// until it fails, then the next; calls wait meanwhile, and see no error unless all
// are away for Options.Wait.
//
// An id is handed out once. A request is never sent again, so that a lost answer
// loses ids and repeats none: what the client drops, because an answer was lost,
// because it became too old or because the program ended, nobody ever gets.
//
// An id carries the time at which the server issued its block, at most
// Options.MaxAge before it is handed out. A timer drops what is older, so that a
// process that was paused may hand out a few such ids in its first moments. Ids of
// one client come in the order in which its server gave them: a call that begins
// after another has returned gets a greater id if the server says so of its series,
// which holds for a flake. After a change to another server, and between clients,
// ids are in order up to MaxAge and the difference of the servers' clocks. Blocks of
// a sequence may be in any order where the server reserved them as ranges.
package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
)

// A Client hands out ids of one series. It is a [firn.Source]; all its methods may
// be called from many goroutines at once.
type Client struct {
	now atomic.Pointer[block] // what calls draw from: that of the stock

	series  string
	options Options
	began   time.Time     // when the time of the stock was 0
	nudge   chan struct{} // there may be something to fetch
	stop    context.CancelFunc
	done    sync.WaitGroup // the fetcher
	timer   *time.Timer    // calls expire

	mu      sync.Mutex // guards the rest
	stock   stock
	armed   bool          // the timer runs
	wanted  int           // ids that calls wait for
	missed  bool          // a call would have waited, but for the outage
	changed chan struct{} // closed when there is something new for calls that wait
	trouble trouble
	counts  counts
	closed  bool
}

var _ firn.Source = (*Client)(nil)

// A trouble is what keeps ids from coming. The zero trouble is that nothing does.
type trouble struct {
	err   error         // what came of the last request
	since time.Duration // when it began
	final error         // all servers were asked, and this is what somebody has to do something about
}

// Open connects to a server and fetches the first ids. The client outlives ctx.
//
// Errors are those of Next, and those of an address, a name or an option that
// cannot be.
func Open(ctx context.Context, url, series string, opts *Options) (*Client, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	a, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	if series == "" || strings.ContainsAny(series, "\r\n") {
		return nil, errors.New("client: the series has no name, or more than a line of it")
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Client{
		series: series, options: o, began: time.Now().Add(-time.Second),
		nudge: make(chan struct{}, 1), stop: stop, changed: make(chan struct{}),
		stock: newStock(o.limits()),
	}
	c.timer = time.AfterFunc(time.Hour, c.expire)
	c.now.Store(c.stock.now)
	c.done.Go(func() { c.run(life, newServers(a, series, &c.options)) })
	if err := c.wait(ctx, 1); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Next returns an id. Where none is in hand it waits for a server, or for ctx.
//
// Errors: [*OutageError] when no server gives ids for longer than Options.Wait,
// [*Error] when a server refuses, [*AnswerError] when one is not firn, ctx's, and
// [firn.ErrClosed] after Close. [firn.Retryable] says which pass by themselves.
func (c *Client) Next(ctx context.Context) (firn.ID, error) {
	b := c.now.Load()
	i := b.taken.Add(1) - 1
	if i < b.count {
		if i == b.half {
			c.wake()
		}
		return b.id(i), nil
	}
	return c.next(ctx)
}

// next is Next where the block is spent.
func (c *Client) next(ctx context.Context) (firn.ID, error) {
	var one [1]firn.ID
	ids, err := c.Append(ctx, one[:0], 1)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// Append appends n ids to dst. Errors are those of Next; with one it returns dst
// with the ids it got.
func (c *Client) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	if n <= 0 {
		return dst, nil
	}
	dst = slices.Grow(dst, n)
	for end := len(dst) + n; ; {
		var half bool
		if dst, half = c.now.Load().take(dst, end-len(dst)); half {
			c.wake()
		}
		if len(dst) == end {
			return dst, nil
		}
		if err := c.wait(ctx, end-len(dst)); err != nil {
			return dst, err
		}
	}
}

// wake has the fetcher look whether something is due.
func (c *Client) wake() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// wait returns when there are ids in hand for a call that wants n, or with an
// error that says why there are none.
func (c *Client) wait(ctx context.Context, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draw().left() > 0 {
		return nil
	}
	t := time.NewTimer(c.options.Wait)
	defer t.Stop()
	c.wanted += n
	defer func() { c.wanted -= n }()
	for c.draw().left() == 0 {
		if err := c.refusal(); err != nil {
			return err
		}
		changed := c.changed
		c.wake()
		c.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		case <-t.C:
			err = errWaited
		}
		c.mu.Lock()
		switch {
		case err == errWaited:
			return &OutageError{Series: c.series, Wait: c.options.Wait, Err: c.trouble.err}
		case err != nil:
			return err
		}
	}
	return nil
}

var errWaited = errors.New("client: waited for as long as a call does")

// refusal is why a call that finds nothing in hand is not to wait; nil if it is.
func (c *Client) refusal() error {
	switch away := c.time() - c.trouble.since; {
	case c.closed:
		return firn.ErrClosed
	case c.trouble.final != nil:
		return c.trouble.final
	case c.trouble.err != nil && away >= c.options.Wait:
		c.missed = true
		return &OutageError{Series: c.series, Wait: away, Err: c.trouble.err}
	}
	return nil
}

// draw has calls draw from the right block, and returns it.
func (c *Client) draw() *block {
	b := c.stock.draw(c.time())
	c.now.Store(b)
	return b
}

// expire drops what has become too old.
func (c *Client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed = false; !c.closed {
		c.draw()
		c.setTimer()
	}
}

// setTimer has expire called in time. Blocks become too old in the order in which
// they came, so that a timer that runs is early enough.
func (c *Client) setTimer() {
	if t := c.stock.expires(); t > 0 && !c.armed {
		c.armed = true
		c.timer.Reset(t - c.time())
	}
}

// time is now, on the clock of the stock. It is never 0.
func (c *Client) time() time.Duration { return time.Since(c.began) }

// Close drops what is in hand and ends the connection. Calls that wait return
// [firn.ErrClosed], as do later ones. It may be called more than once, and returns
// nil.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.timer.Stop()
		c.stock.clear()
		c.draw()
		c.announce()
	}
	c.mu.Unlock()
	c.stop()
	c.done.Wait()
	return nil
}

// announce has calls that wait look again.
func (c *Client) announce() {
	if c.wanted > 0 {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}
