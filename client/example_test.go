package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/client"
)

// A program takes ids from firn serve, at two addresses for the case that one is away.
func Example() {
	ctx := context.Background()
	ids, err := client.Open(ctx, "redis://:TOKEN@a.example:6380,b.example:6380", "photo", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Next(ctx))
}
