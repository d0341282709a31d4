package client

import "time"

// A State is what a client says of itself now.
type State struct {
	Server string // that gave the last ids: host:port
	Err    error  // why none come; nil: they do, or nobody wants one

	Left   int           // ids in hand
	Block  int           // ids asked for at a time
	Rate   float64       // ids used in a second, lately
	Refill time.Duration // how long it took to get more, at worst lately

	Fetched int64 // ids, since Open
	Dropped int64 // of them, those that became too old: nobody gets them
	Failed  int64 // requests of which nothing came
}

// counts are those that nothing else needs.
type counts struct {
	server          string
	fetched, failed int64
}

// State returns how the client is.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draw()
	return State{
		Server: c.counts.server, Err: c.trouble.err,
		Left:  int(c.stock.left()),
		Block: c.stock.pace.order(0, c.stock.limits).size, Rate: c.stock.pace.rate, Refill: c.stock.pace.worst,
		Fetched: c.counts.fetched, Dropped: c.stock.waste, Failed: c.counts.failed,
	}
}
