package move

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// This file finds out early that somebody has changed the tables of a shard since its copy began.

// alikePause is between two comparisons of the schemas of shards that are being copied. One takes both servers some
// milliseconds a shard.
const alikePause = 10 * time.Second

// alike refuses shards whose schema is not what its copy is any more, which is why the copy may come to no end. It
// looks at once where a move is continued.
func (m *Mover) alike(ctx context.Context, g goal, some []pairOf) error {
	if time.Since(m.alikeAt) < alikePause {
		return nil
	}
	for _, p := range some {
		if _, err := m.compareSchemas(ctx, g, p); err != nil {
			return m.noWayBack(g, p.shard, err)
		}
	}
	m.alikeAt = time.Now()
	return nil
}

// A PartedError says that somebody has changed the tables of a shard since its copy began, on one of the two servers. Err
// is what the source said, with the lines in which the two schemas differ.
type PartedError struct {
	Shard int64
	Err   error
}

func (e *PartedError) Error() string {
	return notAlikeText(e.Shard) + ": " + strings.TrimPrefix(e.Err.Error(), "shard: ")
}

func (e *PartedError) Unwrap() error { return e.Err }

func notAlikeText(shards ...int64) string {
	return fmt.Sprintf("the two copies of shard %s are not alike any more", List(shards))
}
