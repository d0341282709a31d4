package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// The step that creates a database creates the pool, once.
func Example() {
	ctx := context.Background()
	s := memory.New() // in earnest: postgres.New(db), or open.URL(ctx, url)

	info, err := pool.Create(ctx, s, pool.Default, &pool.Options{Workers: 256})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: workers %d-%d\n", info.Name, info.First, info.Last)

	// Another pool of the store must not make the same ids.
	_, err = pool.Create(ctx, s, "mail", nil)
	var overlap *pool.OverlapError
	fmt.Println(errors.As(err, &overlap), overlap.Same)
	_, err = pool.Create(ctx, s, "mail", &pool.Options{First: 256})
	fmt.Println(err)
	// Output:
	// default: workers 0-255
	// true 0-255
	// <nil>
}
