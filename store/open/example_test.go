package open_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/open"
)

// The store is named by a URL, such as that in FIRN_STORE.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	s, err := open.URL(ctx, "sqlite:"+filepath.Join(dir, "ids.db"))
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

	fmt.Println(open.Check("postgers://app:secret@db/app"))
	// Output:
	// true <nil>
	// store/open: "postgers://app:xxxxx@db/app": no store is called "postgers"; is it postgres?
}
