package lease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memory"
)

// A program opens one lease, keeps it, and closes it at its end. The store is one that
// other processes share: a file on one host, a database on many.
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
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a < b, ids.State().Issuing)
	// Output: true true
}

// A process that has a number of its own takes the worker of that number while it is free.
func ExamplePrefer() {
	ctx := context.Background()
	ids, err := lease.Open(ctx, memory.New(), &lease.Options{Choice: lease.Prefer(7)})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.State().Worker)
	// Output: 7
}
