package check_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// A program prints what is wrong with the servers of its shards.
func ExampleFindings() {
	config, err := pgx.ParseConfig("postgres://app@db1/app")
	if err != nil {
		log.Fatal(err)
	}
	servers := check.Examine(context.Background(), []topology.Server{{Name: "a", Config: config}})
	moves := func(int64) bool { return false } // no shard waits to be moved on
	for _, f := range check.Findings(servers, time.Now(), moves) {
		fmt.Println(f)
	}
}
