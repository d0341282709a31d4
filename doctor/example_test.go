package doctor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/doctor"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// A program that starts says what is wrong with its store.
func ExampleStore() {
	ctx := context.Background()
	store := memory.New()
	if _, err := pool.Create(ctx, store, "web", &pool.Options{Workers: 4}); err != nil {
		log.Fatal(err)
	}
	for f := range doctor.Store(ctx, store, nil) {
		if f.State != doctor.OK || f.Check == "pool web, workers" {
			fmt.Printf("%s: %s: %s %s\n", f.State, f.Check, f.Text, f.Do)
		}
	}
	// Output:
	// ok: pool web, workers: 0 to 3: 0 held, 0 unusable, 4 free
}
