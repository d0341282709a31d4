package move_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// Two shards move to server b, and a moment later their old copies on a are dropped. Killed at any
// instant, the same program goes on where it was.
func ExampleMover() {
	ctx := context.Background()
	var servers []topology.Server
	for _, name := range []string{"a", "b"} {
		config, err := pgx.ParseConfig("postgres://firn@" + name + ".example.com/app")
		if err != nil {
			log.Fatal(err)
		}
		servers = append(servers, topology.Server{Name: name, Config: config})
	}
	plan, err := move.NewPlan(ctx, servers[0], servers[1], []int64{17, 18}, false, nil)
	if err == nil {
		err = plan.Err() // what speaks against the move, each with what to do
	}
	if err != nil {
		log.Fatal(err)
	}
	m := move.New(servers[0], servers[1], &move.Options{Progress: func(p move.Progress) {
		log.Printf("%s: %d of %d rows", p.Phase, p.Rows, p.RowsTotal)
	}})
	defer m.Close()
	moved, err := m.Move(ctx, []int64{17, 18})
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range moved {
		log.Printf("shard %d took no writes for %s", one.Shard, one.Pause)
	}
	if _, err := m.Finish(ctx, []int64{17, 18}); err != nil { // until then Revert takes them back
		log.Fatal(err)
	}
}

// What to do next about a move that has arrived, as firn shard status says it.
func ExampleMove_Next() {
	m := move.Move{Source: "a", Target: "b", Shards: []int64{17, 18, 19}, Moved: []int64{17, 18, 19}, Phase: move.Arrived}
	for _, advice := range m.Next() {
		fmt.Println(advice)
	}
	// Output:
	// to drop the old copies: firn shard finish 17-19
	// to go back: firn shard revert 17-19
}

func ExampleList() {
	fmt.Println(phrase.Numbers([]int64{3, 17, 18, 19, 99}))
	// Output: 3,17-19,99
}
