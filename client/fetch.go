package client

import (
	"context"
	"time"
)

// run is the fetcher: it alone talks to servers.
func (c *Client) run(ctx context.Context, s *servers) {
	defer s.hangUp()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.nudge:
			for c.fill(ctx, s) {
			}
		}
	}
}

// fill fetches what is due, and reports whether anything was and came. It asks again
// for as long as it stays due.
func (c *Client) fill(ctx context.Context, s *servers) bool {
	since := c.time()
	for o := c.ask(since); o.ids > 0 && ctx.Err() == nil && c.due(); {
		blocks, err := s.fetch(ctx, o, c.time)
		if err == nil {
			c.take(blocks, since, s.server())
			return true
		}
		c.fail(err, since, s)
		if !sleep(ctx, s.pause()) {
			return false
		}
	}
	c.giveUp()
	return false
}

// ask returns what to fetch; no ids: nothing.
func (c *Client) ask(t time.Duration) order {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wanted := c.want(); c.stock.due(t, wanted) {
		return c.stock.ask(t, wanted)
	}
	return order{}
}

// due reports whether something is still to be fetched.
func (c *Client) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.stock.due(c.time(), c.want())
	c.missed = false
	return due
}

// want is how many ids calls wait for, or would.
func (c *Client) want() int {
	if c.missed {
		return max(c.wanted, 1)
	}
	return c.wanted
}

// take hands over blocks that were due since then.
func (c *Client) take(blocks []*block, since time.Duration, server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	now := c.time()
	c.stock.add(blocks, now, now-since)
	c.counts.fetched += c.stock.came
	c.counts.server = server
	c.trouble = trouble{}
	c.draw()
	c.setTimer()
	c.announce()
}

// fail notes a request of which nothing came, and has the calls that wait hear of
// it once every server has been asked.
func (c *Client) fail(err error, since time.Duration, s *servers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.failed++
	if c.trouble.err == nil {
		c.trouble.since = since
	}
	c.trouble.err, c.trouble.final = err, nil
	if s.round() {
		c.trouble.final = s.refused
		c.announce()
	}
}

// giveUp forgets the trouble when nobody wants an id any more: what it was then may
// not be so when somebody does.
func (c *Client) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = trouble{}
}

// sleep returns false when ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
