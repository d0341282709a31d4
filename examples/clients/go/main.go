// Command go prints ids of a firn server, which it gets through go-redis, a block
// ahead:
//
//	go run ./examples/clients/go redis://127.0.0.1:6380 photo 10
//
// It is for a program that has such a client already and wants nothing else; package
// client does this too, and follows the rate, and goes to another server.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// IDs hands out ids of a series, each once, none older than maxAge. What is dropped,
// because it became too old or because its answer was lost, nobody ever gets.
type IDs struct {
	client *redis.Client
	series string
	mu     sync.Mutex
	left   []string
	born   time.Time
	ahead  chan block // nil: none is on its way
}

type block struct {
	born time.Time
	ids  []string
	err  error
}

const (
	size   = 1000
	maxAge = time.Second
)

func (s *IDs) fetch() chan block {
	c := make(chan block, 1)
	go func() {
		b := block{born: time.Now()}
		b.ids, b.err = s.client.Do(context.Background(), "FIRN.NEXT", s.series, size).StringSlice()
		c <- b
	}()
	return c
}

// Next returns an id.
func (s *IDs) Next() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.left) == 0 || time.Since(s.born) > maxAge {
		if s.ahead == nil {
			s.ahead = s.fetch()
		}
		b := <-s.ahead
		s.ahead = nil
		if b.err != nil {
			return 0, b.err
		}
		s.left, s.born = b.ids, b.born
	}
	if s.ahead == nil && len(s.left) <= size/2 {
		s.ahead = s.fetch()
	}
	id := s.left[0]
	s.left = s.left[1:]
	return strconv.ParseInt(id, 10, 64)
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url, series, count string) error {
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	ids := &IDs{client: redis.NewClient(o), series: series}
	defer ids.client.Close()
	for range n {
		id, err := ids.Next()
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return nil
}
