package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// This file finds the shard of a key while ranges may be added at the end of a cluster of ranges. All
// other keys keep their shards, so only those of the last range that is known are looked at twice.

// rangesFor is how long it is believed that no range was added. Whoever adds one waits for twice as long before a
// program uses its keys: the documentation says a minute.
const rangesFor = 30 * time.Second

// shardOf returns the shard of a key.
func (c *Cluster) shardOf(key string) (int64, error) {
	keys := c.Map().Keys
	n, err := keys.Shard(key)
	if err != nil || keys.Scheme() != topology.Range || n < keys.Shards()-1 || c.heard(time.Now().Add(-rangesFor)) {
		return n, err
	}
	// Each server knows of a range when it may be used, so the word of one will do.
	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*lookPatience)
	defer cancel()
	if c.look(ctx, c.names(""), asked) != nil || !c.heard(asked) {
		return 0, fmt.Errorf("shard: no server says whether a range of keys was added above shard %d: %w", n, errors.Join(c.trouble()...))
	}
	return c.Map().Keys.Shard(key)
}
