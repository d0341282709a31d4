package check

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// HasShards reports whether a database has shards of firn's. It is false where the database does
// not say so within 5 seconds.
func HasShards(ctx context.Context, config *pgx.ConnConfig) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	var table, any bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('firn.shard') IS NOT NULL").Scan(&table); err != nil || !table {
		return false
	}
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM firn.shard)").Scan(&any)
	return err == nil && any
}
