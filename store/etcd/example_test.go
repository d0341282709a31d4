package etcd_test

import (
	"context"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/etcd"
)

// The pool was created beforehand: firn pool create --store etcd://etcd:2379
func Example() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ids, err := lease.Open(ctx, etcd.New(client, &etcd.Options{Prefix: "shop/ids/"}), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Next(ctx))
}
