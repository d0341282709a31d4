package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memory"
)

// A program opens a series once, draws from it, and closes it when it ends, which hands back
// the numbers that it did not use.
func Example() {
	ctx := context.Background()
	st := memory.New() // a program uses a store that stays, such as store/postgres

	// The step that creates the database does this, once; a program does not.
	if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{First: 1000}); err != nil {
		log.Fatal(err)
	}

	orders, err := sequence.Open(ctx, st, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	for range 3 {
		id, err := orders.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 1000
	// 1001
	// 1002
}

// A series that another system has drawn from continues above its last number.
func ExampleRaise() {
	ctx := context.Background()
	st := memory.New()
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		log.Fatal(err)
	}
	info, err := sequence.Raise(ctx, st, "orders", 70_000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Granted)

	_, err = sequence.Create(ctx, st, "orders", nil)
	var exists *sequence.ExistsError
	fmt.Println(errors.As(err, &exists))
	// Output:
	// 70000
	// true
}
