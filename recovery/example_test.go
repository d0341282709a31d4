package recovery_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memory"
)

// A backup of a store was put back, and every process that uses the store is stopped.
func Example() {
	ctx := context.Background()
	store := memory.New()
	if _, err := pool.Create(ctx, store, pool.Default, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := sequence.Create(ctx, store, "orders", nil); err != nil {
		log.Fatal(err)
	}

	contents, err := recovery.Read(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := contents.Plan(ctx, &recovery.Options{Numbers: 100_000})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("series:", plan.Series(), "no ids for", plan.Pause)
	done, err := plan.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("orders continues above", done.Sequences[0].Info.Granted)
	// Output:
	// series: [orders] no ids for 5m10s
	// orders continues above 100000
}
