package server_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store/memory"
)

// A server of one series, and a session that draws from it.
func Example() {
	ctx := context.Background()
	// A program uses a store that stays, such as store/postgres.
	ids, err := lease.Open(ctx, memory.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	srv, err := server.New(nil, server.Numbers("photo", ids, nil))
	if err != nil {
		log.Fatal(err)
	}

	session, err := srv.Enter("") // a token, where the server has tokens
	if err != nil {
		log.Fatal(err)
	}
	values, err := session.Next(ctx, "photo", nil, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(values))
	// Output: 10
}
