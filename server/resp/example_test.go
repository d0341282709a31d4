package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// A server answers INCR of any Redis client with the next number of a series.
func ExampleServe() {
	ctx, stop := context.WithCancel(context.Background())
	// A program uses a store that stays, such as store/postgres.
	st := memory.New()
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		log.Fatal(err)
	}
	orders, err := sequence.Open(ctx, st, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	srv, err := server.New(nil, server.Numbers("orders", orders, nil))
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- resp.Serve(ctx, l, srv, nil) }()

	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(c, "INCR orders\r\n")
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", answer)
	c.Close()
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// ":1\r\n"
	// ended: <nil>
}
