package redis_test

import (
	"context"
	"fmt"
	"log"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/redis"
)

// The pool was created beforehand: firn pool create --store redis://redis:6379
func Example() {
	ctx := context.Background()
	client := goredis.NewClient(&goredis.Options{Addr: "redis:6379"})
	defer client.Close()

	ids, err := lease.Open(ctx, redis.New(client, nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Next(ctx))
}
