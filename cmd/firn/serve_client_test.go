//go:build !windows

package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/testserver"
)

// Two servers on one store are killed in turn under the load of clients that have
// the addresses of both: no call fails, and nothing is given twice.
func TestServeClient(t *testing.T) {
	dir := t.TempDir()
	onPostgres(t, testserver.Postgres(t).URL(), dir, photoLine, ordersLine)
	servers := []*served{serve(t, dir), serve(t, dir)}
	addrs := []string{servers[0].listen["resp"], servers[1].listen["resp"]}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	defer load.Wait()
	clients := map[string]*client.Client{}
	drawn := map[string]*[4][]firn.ID{}
	for _, series := range []string{"photo", "orders"} {
		c, err := client.Open(ctx, "redis://"+addrs[0]+","+addrs[1], series, &client.Options{Wait: long})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[series], drawn[series] = c, new([4][]firn.ID)
		for i := range drawn[series] {
			mine := &drawn[series][i]
			load.Go(func() {
				for ctx.Err() == nil {
					id, err := c.Next(t.Context())
					if err != nil {
						t.Errorf("%s: %v", series, err)
						return
					}
					if *mine = append(*mine, id); len(*mine)%10 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
	}
	for i := range 4 {
		dead := i % 2
		servers[dead].Process.Kill()
		servers[dead].Wait()
		for _, c := range clients {
			n := c.State().Fetched
			servers[1-dead].until("ids of the other", func() bool {
				s := c.State()
				return s.Server == addrs[1-dead] && s.Fetched > n+1000
			})
		}
		servers[dead] = serve(t, dir, "--resp", addrs[dead])
	}
	stop()
	load.Wait()
	for series, ids := range drawn {
		all := slices.Concat(ids[:]...)
		n := len(all)
		slices.Sort(all)
		if again := n - len(slices.Compact(all)); again > 0 || n < 4000 {
			t.Errorf("%s: of %d, %d were given twice", series, n, again)
		}
		t.Logf("%s: %d; %+v", series, n, clients[series].State())
	}
	for _, s := range servers {
		s.stop()
	}
}
