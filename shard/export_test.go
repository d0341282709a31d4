package shard

import "time"

// HeardAt has a cluster believe that it last heard its servers at an instant.
func HeardAt(c *Cluster, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.looked {
		c.looked[name] = at
	}
}
