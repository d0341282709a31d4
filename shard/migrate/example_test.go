package migrate_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/topology"
)

func ExampleReadDir() {
	files, err := migrate.ReadDir(fstest.MapFS{
		"002_photos.sql": {Data: []byte("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), caption text);")},
		"001_users.sql":  {Data: []byte("CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id(), name text);")},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Number, f.Name)
	}
	// Output:
	// 1 001_users.sql
	// 2 002_photos.sql
}

// Each shard gets the files that it does not have.
func ExamplePlan_Run() {
	var (
		ctx     = context.Background()
		servers []topology.Server // all of the cluster
		files   []migrate.File    // of ReadDir
	)
	release, err := install.LockAll(ctx, servers)
	if err != nil {
		log.Fatal(err)
	}
	defer release()
	state, err := migrate.Look(ctx, servers)
	if err != nil {
		log.Fatal(err)
	}
	all := func(int64) bool { return true }
	plan, err := migrate.NewPlan(state, files, all, false)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range plan.Run(ctx, servers, nil) {
		if r.Err != nil {
			log.Printf("shard %d on %s: %v", r.Shard, r.Server, r.Err)
		}
	}
}
