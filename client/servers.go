package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// servers are those of one address, of which one is asked. They are used by one
// goroutine.
type servers struct {
	address address
	options *Options
	series  string
	at      int   // the one that is asked
	conn    *conn // to it; nil: none
	most    int   // ids that it gives at a time
	failed  int   // requests since the last that was answered with ids
	refused error // of the first of them that a later try does not mend, in this round
}

// newServers begins with any of them, so that clients are spread over all. One
// that answers is kept.
func newServers(a address, series string, o *Options) *servers {
	return &servers{address: a, options: o, series: series, at: rand.IntN(len(a.hosts))}
}

// fetch places an order once, or for fewer ids where a server does not give so many.
// After an error the next server's turn has come. Time is read for the age of ids.
//
// A request is never sent again: the ids of one whose answer was lost are nobody's.
func (s *servers) fetch(ctx context.Context, o order, time func() time.Duration) ([]*block, error) {
	all, err := s.ask(ctx, o, time)
	if err == nil {
		s.failed, s.refused = 0, nil
		return all, nil
	}
	if s.round() {
		s.refused = nil
	}
	if s.refused == nil && !firn.Retryable(err) {
		s.refused = err
	}
	s.hangUp()
	s.at = (s.at + 1) % len(s.address.hosts)
	s.failed++
	return nil, err
}

func (s *servers) ask(ctx context.Context, o order, time func() time.Duration) (all []*block, err error) {
	if s.conn == nil {
		if s.conn, err = dial(ctx, s.server(), &s.address, s.options); err != nil {
			return nil, err
		}
		s.most = maxBlock
	}
	for {
		n := min(o.size, s.most)
		times := min(o.ids/n, burst)
		if s.failed > 0 {
			times = 1 // several may be too old when the last is there
		}
		born := time()
		all, err = s.conn.fetch(ctx, s.series, n, times, born)
		if err != nil && len(all) > 0 { // it comes again, if it stays; what came before it is good
			s.hangUp()
			err = nil
		}
		if err == nil && s.options.MaxAge > 0 && time()-born >= s.options.MaxAge {
			return nil, &downError{s.server(), fmt.Errorf("its answer took %s, and ids may be %s old (MaxAge)", time()-born, s.options.MaxAge)}
		}
		most := allowed(err, n)
		if most == 0 {
			return all, err
		}
		s.most = most
	}
}

// server is the one that is asked.
func (s *servers) server() string { return s.address.hosts[s.at] }

// round reports whether each server has been asked equally often since the last
// answer.
func (s *servers) round() bool { return s.failed%len(s.address.hosts) == 0 }

func (s *servers) hangUp() {
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
}

// Pauses after all servers have failed.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// pause is how long to wait after an error: not at all while there are servers
// that have not been asked. Clients whose servers went away at once do not come
// back at once.
func (s *servers) pause() time.Duration {
	if !s.round() {
		return 0
	}
	rounds := s.failed / len(s.address.hosts)
	p := mostPause
	if rounds < 7 {
		p = min(leastPause<<(rounds-1), mostPause)
	}
	return p/2 + rand.N(p/2)
}

// codeLimit is how a server says that it does not give so many at a time; the next
// word is how many it gives.
const codeLimit = "LIMIT"

// allowed is how many ids a server gives at a time, where that is why it refused n;
// else 0.
func allowed(err error, n int) int {
	var reply *Error
	if !errors.As(err, &reply) || reply.Code != codeLimit {
		return 0
	}
	text, _, _ := strings.Cut(reply.Text, " ")
	most, bad := strconv.Atoi(text)
	if bad != nil || most < 1 || most >= n {
		return 0
	}
	return most
}
