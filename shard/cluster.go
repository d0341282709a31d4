package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/topology"
)

// Options are those of a [Cluster]. Nil, or a zero field, means the default.
type Options struct {
	// Wait is how long a transaction waits for a shard that is closed, as it is for a
	// moment when it moves, and for a server that refuses or loses connections, as when
	// it is restarted: 5 s. Below zero it does not wait. For one that takes a connection
	// and says nothing, as behind a network that was cut, only ctx is a limit.
	Wait time.Duration
}

const defaultWait = 5 * time.Second

// A Cluster runs transactions on shards, wherever the shards are. It is safe for concurrent use.
//
// It keeps a [topology.Map], and asks the servers again when the map turns out to be old. You need not close it:
// the pools are yours.
type Cluster struct {
	id     string
	layout firn.Layout
	wait   time.Duration

	*lookout
}

// Open looks at the servers of a cluster, through one pool for each, by the server's name. A pool leads to
// a server, or to a PgBouncer in front of it. Its role needs the role that firn shard init has made for
// programs (firn_app).
//
// Statements that the driver keeps prepared have the types of the shard on which they were first
// used. Where shards have types of their own, such as enums, or differ while a migration runs, or behind
// a PgBouncer, give the pools default_query_exec_mode=exec.
//
// One server has to answer. Until the others answer, Open does not know their shards, or knows them from
// the servers that they moved away from. It fails where servers belong to different clusters, or have
// other names than in pools.
func Open(ctx context.Context, pools map[string]*pgxpool.Pool, o *Options) (*Cluster, error) {
	if len(pools) == 0 {
		return nil, errors.New("shard: no server to open a cluster of")
	}
	for name, pool := range pools {
		if err := topology.CheckServerName(name); err != nil {
			return nil, err
		}
		if pool == nil {
			return nil, fmt.Errorf("shard: server %s has no pool", name)
		}
	}
	c := &Cluster{wait: defaultWait, lookout: newLookout(pools)}
	if o != nil && o.Wait != 0 {
		c.wait = max(0, o.Wait)
	}
	if err := c.first(ctx); err != nil {
		return nil, err
	}
	m := c.Map()
	c.id, c.layout = m.Cluster, m.Layout
	return c, nil
}

// A Shard is one shard of a cluster, by its number. It holds no resources and never gets old: each
// transaction looks up where the shard is. You can compare shards, and use one as the key of a map. Where
// the cluster has no such shard, InTx returns the error.
type Shard struct {
	cluster *Cluster
	number  int64
	err     error // why there can be none
}

// ErrNoShard says that the cluster has no such shard, or that an id or key belongs to none.
var ErrNoShard = errors.New("there is no such shard")

// Shard returns the shard of a number.
func (c *Cluster) Shard(number int64) Shard {
	if number < 0 || number >= c.layout.Shards() {
		return c.none(fmt.Errorf("shard: %w: %d (layout %s has 0 to %d)", ErrNoShard, number, name(c.layout), c.layout.Shards()-1))
	}
	return Shard{cluster: c, number: number}
}

// ForID returns the shard that an id was made on.
func (c *Cluster) ForID(id firn.ID) Shard {
	parts, err := c.layout.Decode(id)
	if err != nil {
		return c.none(fmt.Errorf("shard: %w: %d is no id of layout %s: %w", ErrNoShard, id, name(c.layout), err))
	}
	return Shard{cluster: c, number: parts.Shard}
}

// ForKey returns the shard of a key, by the key scheme of the cluster. In a cluster of ranges it may ask the
// servers first, where the key is above the last bound that they named more than half a minute ago.
func (c *Cluster) ForKey(key string) Shard {
	number, err := c.shardOf(key)
	if err != nil {
		return c.none(err)
	}
	return Shard{cluster: c, number: number}
}

// ForNumber returns the shard of a key that is a number, such as the id of a user: that of [Cluster.ForKey]
// with the number in decimal.
func (c *Cluster) ForNumber(n int64) Shard { return c.ForKey(strconv.FormatInt(n, 10)) }

func (c *Cluster) none(err error) Shard { return Shard{cluster: c, number: -1, err: err} }

// All returns the shards of the cluster, by number. Where a server has never answered, or has no pool, All
// includes the shards that it may have: an error is better than a shard that is left out.
func (c *Cluster) All() iter.Seq[Shard] {
	numbers := c.numbers(c.Map().Keys.Shards())
	return func(yield func(Shard) bool) {
		for _, n := range numbers {
			if !yield(Shard{cluster: c, number: n}) {
				return
			}
		}
	}
}

// Group returns, for each shard, which of the ids were made on it, in the order given. An id that is of no
// shard comes under a Shard of its own, whose InTx returns the error.
func (c *Cluster) Group(ids []firn.ID) map[Shard][]firn.ID {
	groups := make(map[Shard][]firn.ID)
	for _, id := range ids {
		s := c.ForID(id)
		groups[s] = append(groups[s], id)
	}
	return groups
}

// Number returns the number of the shard, or -1 where there can be none.
func (s Shard) Number() int64 { return s.number }

// String returns the shard for people.
func (s Shard) String() string {
	if s.err != nil {
		return "no shard"
	}
	return "shard " + strconv.FormatInt(s.number, 10)
}

// name is what a person calls a layout.
func name(l firn.Layout) string { return cmp.Or(l.Name(), l.String()) }
