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

// A generator stands for one that is not of this module.
type generator struct{ finished chan struct{} }

func newGenerator(_ int64) *generator {
	g := &generator{finished: make(chan struct{})}
	close(g.finished)
	return g
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

// A program with an id generator of its own stops it when Done is closed.
func ExampleHold() {
	ctx := context.Background()
	worker, err := lease.Hold(ctx, memory.New(), &lease.Options{Choice: lease.Only(7)})
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	generator := newGenerator(worker.Fields()["worker"])
	select {
	case <-worker.Done():
		log.Printf("stopping: %v", worker.Err())
	case <-generator.finished:
		fmt.Println("finished with worker", worker.Number())
	}
	// Output: finished with worker 7
}
