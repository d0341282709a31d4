package move

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// This file keeps the pauses of cutovers for metrics, on the server that a shard comes to: in a comment on firn.move, which is
// there also after a move is finished.

// Pauses are the pauses of all cutovers to a server. A mover that was killed in a cutover has recorded none.
type Pauses struct {
	Cutovers uint64
	Seconds  float64 // of all together
	Last     float64 // of the last one, in seconds
}

// pausesText begins the comment; a JSON object follows.
const pausesText = "firn: pauses "

// pausesSQL is the JSON object of the comment. Without a comment it is '{}'.
const pausesSQL = "coalesce(substring(obj_description('firn.move'::regclass, 'pg_class') FROM '^" + pausesText + "(\\{.*\\})$'), '{}')"

// noteWait is how long another mover that records a pause is waited for.
const noteWait = 200 * time.Millisecond

// notePause records a pause. It fails without consequence: a metric is no reason to end a move.
func (e *end) notePause(ctx context.Context, d time.Duration) {
	sql := "BEGIN; " + limits(noteWait, cutTime) + fmt.Sprintf(`DO $do$
DECLARE
	p jsonb;
BEGIN
	LOCK TABLE firn.move IN SHARE UPDATE EXCLUSIVE MODE;
	p := %s;
	EXECUTE format('COMMENT ON TABLE firn.move IS %%L', %s || jsonb_build_object('cutovers', coalesce((p->>'cutovers')::bigint, 0) + 1,
		'seconds', coalesce((p->>'seconds')::numeric, 0) + %[3]f, 'last', %[3]f)::text);
END $do$; COMMIT`, pausesSQL, literal(pausesText), d.Seconds())
	_, _ = e.conn.Exec(ctx, sql)
	e.rollback(ctx)
}

// AllPauses returns the pauses of each server that answers and has firn's tables, by its name.
func AllPauses(ctx context.Context, servers []topology.Server) map[string]Pauses {
	var mu sync.Mutex
	all := map[string]Pauses{}
	_ = atonce.Each(servers, func(_ int, s topology.Server) error {
		var p Pauses
		err := s.Ask(ctx, func(c *pgx.Conn) error {
			return c.QueryRow(ctx, "SELECT coalesce((p->>'cutovers')::bigint, 0), coalesce((p->>'seconds')::float8, 0), coalesce((p->>'last')::float8, 0) FROM (SELECT "+pausesSQL+"::jsonb AS p) AS x").Scan(&p.Cutovers, &p.Seconds, &p.Last)
		})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			all[s.Name] = p
		}
		return nil
	})
	return all
}
