package client_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// A program takes numbers from firn serve. The URL may have several addresses, for the case that
// a server is away: redis://:TOKEN@a.example:6380,b.example:6380.
func Example() {
	ctx := context.Background()
	address, stop := serveFromMemory(ctx, "orders") // in place of firn serve
	defer stop()

	orders, err := client.Open(ctx, "redis://"+address, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	for range 2 {
		n, err := orders.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n)
	}
	// Output:
	// 1
	// 2
}

// serveFromMemory serves a new sequence from memory.
func serveFromMemory(ctx context.Context, name string) (address string, stop func()) {
	st := memory.New()
	if _, err := sequence.Create(ctx, st, name, nil); err != nil {
		log.Fatal(err)
	}
	numbers, err := sequence.Open(ctx, st, name, nil)
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(nil, server.Numbers(name, numbers, nil))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- resp.Serve(ctx, l, srv, nil) }()
	return l.Addr().String(), func() {
		cancel()
		<-ended
		numbers.Close()
	}
}
