package topology

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/internal/phrase"
)

// An UnrecordedError says that a database has schemas whose functions call those of the schema firn, and that the
// schema firn is not there, or has no tables: somebody has dropped it, or has copied the shards without it. It is
// an [ErrNoCluster].
type UnrecordedError struct {
	Database string
	Schemas  []string // in order
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("the schema firn of the database %s is lost, and these schemas make ids with it: %s", e.Database, phrase.Few(e.Schemas))
}

func (e *UnrecordedError) Unwrap() error { return ErrNoCluster }

const unrecordedSQL = `SELECT DISTINCT n.nspname::text, current_database()::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname <> 'firn' AND position('firn.id(' IN p.prosrc) > 0 ORDER BY 1`

// unrecorded returns an [*UnrecordedError] where a database that has no tables of firn has shards all the same, else
// [ErrNoCluster].
func unrecorded(ctx context.Context, q Querier) error {
	var e UnrecordedError
	rows, err := q.Query(ctx, unrecordedSQL)
	if err != nil {
		return ErrNoCluster // a transaction, which has ended with the first query
	}
	defer rows.Close()
	for rows.Next() {
		var schema string
		if err := rows.Scan(&schema, &e.Database); err != nil {
			return err
		}
		e.Schemas = append(e.Schemas, schema)
	}
	if rows.Err() != nil || len(e.Schemas) == 0 {
		return ErrNoCluster
	}
	return &e
}
