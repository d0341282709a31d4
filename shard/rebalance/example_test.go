package rebalance_test

import (
	"context"
	"log"

	"github.com/firn-id/firn/shard/rebalance"
	"github.com/firn-id/firn/shard/topology"
)

// Server a is emptied: its shards go to the others, one after the other, while they are in use.
func Example() {
	var (
		ctx     = context.Background()
		servers []topology.Server // all of the cluster
		options = &rebalance.Options{Drain: "a"}
	)
	if _, _, err := rebalance.Resume(ctx, servers, options); err != nil { // what an earlier run has begun
		log.Fatal(err)
	}
	plan, err := rebalance.NewPlan(ctx, servers, options)
	if err != nil {
		log.Fatal(err)
	}
	refusals, _, err := plan.Check(ctx, servers, options)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range refusals {
		log.Printf("%s: %s", r, r.Do())
	}
	if len(refusals) > 0 {
		return
	}
	moved, err := plan.Run(ctx, servers, options)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%d shards moved", len(moved))
}
