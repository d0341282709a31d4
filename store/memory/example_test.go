package memory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memory"
)

// A test draws ids without a file and without a server.
func Example() {
	ctx := context.Background()
	ids, err := lease.Open(ctx, memory.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	a, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := ids.Next(ctx)
	fmt.Println(a < b, err)
	// Output: true <nil>
}
