package zookeeper_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/zookeeper"
)

// The pool was created beforehand: firn pool create --store zk://zk:2181
func Example() {
	ctx := context.Background()
	conn, _, err := zk.Connect([]string{"zk:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ids, err := lease.Open(ctx, zookeeper.New(conn, &zookeeper.Options{Root: "/shop/ids"}), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Next(ctx))
}
