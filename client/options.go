package client

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Options are the options of a client. Nil, or a zero field, means the default.
type Options struct {
	// Prefetch is how many ids the client fetches at a time. Zero means as many as the program
	// has lately used in a part of MaxAge, and at least twice what it uses while they are
	// fetched. One means no more than calls wait for. A larger number is the size of a block;
	// the client fetches up to eight blocks together if one is used up before the next is
	// there.
	Prefetch int

	// MaxBlock is how many ids the client asks for at most at a time. Zero means 100,000, or as
	// many as a server gives.
	MaxBlock int

	// MaxAge is how old an id may be when the client hands it out; it drops older ones. Zero
	// means 1 second; a negative one means any age.
	MaxAge time.Duration

	// Wait is how long a call waits for servers that do not answer. Zero means 5 seconds.
	Wait time.Duration

	// Timeout is how long a server may take to accept a connection, and to answer (or half as
	// long again), before the client asks another one. Zero means 1 second.
	Timeout time.Duration

	// TLS is for rediss:// addresses. Nil means the machine's roots, and the name in the
	// address.
	TLS *tls.Config
}

const (
	defaultMaxBlock = 100_000
	defaultMaxAge   = time.Second
	defaultWait     = 5 * time.Second
	defaultTimeout  = time.Second
)

// maxBlock bounds the memory that a client takes: 8 bytes for each id in hand, which are
// at most one and a half times what is asked for at a time.
const maxBlock = 1 << 20

// withDefaults returns a copy in which every field but TLS is set, or an error.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxBlock == 0 {
		c.MaxBlock = max(defaultMaxBlock, c.Prefetch)
	}
	if c.MaxAge == 0 {
		c.MaxAge = defaultMaxAge
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	switch {
	case c.MaxBlock < 1 || c.MaxBlock > maxBlock:
		return c, fmt.Errorf("client: MaxBlock %d: it is 1 to %d", c.MaxBlock, maxBlock)
	case c.Prefetch < 0 || c.Prefetch > c.MaxBlock:
		return c, fmt.Errorf("client: Prefetch %d: it is 0 to MaxBlock, %d", c.Prefetch, c.MaxBlock)
	case c.Wait < 0:
		return c, fmt.Errorf("client: Wait %s is negative", c.Wait)
	case c.Timeout < 0:
		return c, fmt.Errorf("client: Timeout %s is negative", c.Timeout)
	}
	return c, nil
}

func (o *Options) limits() limits {
	return limits{most: o.MaxBlock, fixed: o.Prefetch, age: max(o.MaxAge, 0)}
}
