package setup_test

import (
	"context"
	"log"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// exampleServers are databases that already exist, on servers that you run.
func exampleServers() (servers []topology.Server) {
	for _, name := range []string{"a", "b"} {
		config, err := pgx.ParseConfig("postgres://firn@" + name + ".example.com/app")
		if err != nil {
			log.Fatal(err)
		}
		servers = append(servers, topology.Server{Name: name, Config: config})
	}
	return servers
}

// A cluster of 2,000 shards on two servers. Run it again after each upgrade of firn: it then brings
// the functions on the servers up to date.
func Example() {
	ctx := context.Background()
	opened, err := setup.Open(ctx, exampleServers(), true)
	if err != nil {
		log.Fatal(err)
	}
	defer opened.Close()
	plan, err := opened.Init(setup.Wish{Count: 2000})
	if err != nil {
		log.Fatal(err)
	}
	var done atomic.Int64
	if err := plan.Run(ctx, &done); err != nil {
		log.Fatal(err)
	}
}

// Server a was restored from a backup. It opens the shards that no other server has had since.
func ExampleLookReopen() {
	ctx, servers := context.Background(), exampleServers()
	plan, err := setup.LookReopen(ctx, servers, "a", setup.ReopenOptions{Margin: time.Second})
	if err == nil {
		err = plan.CheckOn(ctx, servers)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, question := range plan.Questions() {
		log.Print(question) // ask a person: no server knows the answers
	}
	var done atomic.Int64
	if err := plan.Run(ctx, servers, &done); err != nil {
		log.Fatal(err)
	}
}
