package client

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Options of a client. Nil, or any zero field, takes the default, which the
// comment names first.
type Options struct {
	// Prefetch is how many ids are fetched at a time. 0: as many as are used up in a
	// part of MaxAge at the rate of late, and at least twice what is used while
	// they are fetched. 1: none but those that calls wait for. Else blocks of so many:
	// one, or up to eight together where one is used up before the next is there.
	Prefetch int

	MaxBlock int           // 100,000, or as many as a server gives; how many ids are asked for at most at a time
	MaxAge   time.Duration // 1 s; how old an id may be when it is handed out; older ones are dropped. Negative: any age
	Wait     time.Duration // 5 s; how long a call waits for servers that do not answer
	Timeout  time.Duration // 1 s; how long a server may take to connect, and to answer (or half as long again), before another is asked

	// TLS is for rediss:// addresses; the machine's roots, and the name in the address.
	TLS *tls.Config
}

// Defaults of Options.
const (
	DefaultMaxBlock = 100_000
	DefaultMaxAge   = time.Second
	DefaultWait     = 5 * time.Second
	DefaultTimeout  = time.Second
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
		c.MaxBlock = max(DefaultMaxBlock, c.Prefetch)
	}
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
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
