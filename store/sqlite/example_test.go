package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/sqlite"
)

// All processes of a host that use one file have one store.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "firn") // in earnest: a directory that is kept
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(ctx, filepath.Join(dir, "ids.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ids, err := lease.Open(ctx, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	id, err := ids.Next(ctx)
	fmt.Println(id > 0, err)
	// Output: true <nil>
}
