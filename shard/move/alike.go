package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/jackc/pgx/v5/pgconn"
)

// This file finds out early that somebody has changed the tables of a shard since its copy began.

// alikePause is between two looks at the schemas of shards that are being copied. One takes both servers some
// milliseconds a shard.
const alikePause = 10 * time.Second

// alike refuses shards whose schema was changed since the copy was made, which is why the copy may come to no end. It
// looks at once where a move is continued.
func (m *Mover) alike(ctx context.Context, g goal, some []pairOf) error {
	if time.Since(m.alikeAt) < alikePause {
		return nil
	}
	for _, p := range some {
		if err := m.checkSchemas(ctx, g, p); err != nil {
			return m.noWayBack(g, p.shard, err)
		}
	}
	m.alikeAt = time.Now()
	return nil
}

// checkSchemas refuses a shard whose schema was changed since the copy was made, on either server. Each
// compares its schema with what it was then.
func (m *Mover) checkSchemas(ctx context.Context, g goal, p pairOf) error {
	from, to := m.ends(g)
	var there bool
	if err := to.conn.QueryRow(ctx, "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL", p.source.schema).Scan(&there); err != nil {
		return to.fault(err)
	}
	if !there {
		return &StuckError{p.shard, "its copy is not there any more", giveUp([]pairOf{p})}
	}
	for _, e := range []*end{from, to} {
		if err := parted(p.shard, e.call(ctx, "SELECT firn.check_schema(s) FROM firn.shard AS s WHERE s.shard = $1", p.shard)); err != nil {
			return err
		}
	}
	return nil
}

// parted is a server's error about a schema that was changed, with its shard.
func parted(shard int64, err error) error {
	var changed *pgconn.PgError
	if errors.As(err, &changed) && changed.Code == "ID008" && strings.Contains(changed.Message, "was changed since") {
		return &PartedError{shard, err}
	}
	return err
}

// A PartedError says that somebody has changed the tables of a shard since its copy began, on one of the two servers. Err
// is what that server said, with the lines in which its schema is not what it was.
type PartedError struct {
	Shard int64
	Err   error
}

func (e *PartedError) Error() string {
	return notAlikeText(e.Shard) + ": " + strings.TrimPrefix(e.Err.Error(), "shard: ")
}

func (e *PartedError) Unwrap() error { return e.Err }

func notAlikeText(shards ...int64) string {
	return fmt.Sprintf("the two copies of shard %s are not alike any more", phrase.Numbers(shards))
}
