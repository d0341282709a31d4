package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// A record is replaced only by somebody who has read what it is now.
func Example() {
	ctx := context.Background()
	var s store.Store = memory.New()

	first, err := s.Put(ctx, "pool/web", []byte(`{"n":1}`), store.Condition{}) // it must not be there
	if err != nil {
		log.Fatal(err)
	}
	if _, err = s.Put(ctx, "pool/web", []byte(`{"n":2}`), store.Condition{Version: first.Version}); err != nil {
		log.Fatal(err)
	}
	_, err = s.Put(ctx, "pool/web", []byte(`{"n":3}`), store.Condition{Version: first.Version})
	fmt.Println(errors.Is(err, store.ErrConflict))

	now, err := s.Get(ctx, "pool/web")
	fmt.Println(string(now.Value), err)

	d, err := s.Durability(ctx)
	fmt.Println(d, err)
	// Output:
	// true
	// {"n":2} <nil>
	// durable <nil>
}
