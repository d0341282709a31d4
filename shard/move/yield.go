package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// This file says how long an autovacuum keeps a cutover waiting. It gives way to a session that has waited for
// deadlock_timeout, which the functions of firn shorten where the role may set it.

// slowYield is from which deadlock_timeout on a plan speaks of it.
const slowYield = 2 * time.Second

// yields returns how long an autovacuum makes a session wait, zero where the role may shorten that.
func yields(ctx context.Context, c *pgx.Conn) (after time.Duration, err error) {
	const sql = "SELECT CASE WHEN has_parameter_privilege('deadlock_timeout', 'SET') THEN 0 ELSE setting::bigint END FROM pg_settings WHERE name = 'deadlock_timeout'"
	var ms int64
	err = c.QueryRow(ctx, sql).Scan(&ms)
	if sqlstate(err) == "42883" { // before PostgreSQL 15, where only superusers move shards
		return 0, nil
	}
	return time.Duration(ms) * time.Millisecond, err
}

// hurry is what to do so that an autovacuum gives way sooner.
func hurry(server, user string) string {
	return fmt.Sprintf("on %s: GRANT SET ON PARAMETER deadlock_timeout TO %s; or deadlock_timeout = '1s' for the server", server, identifier(user))
}

// hurryAutovacuum is what to do about an autovacuum that does not give way, or "" where it gives way at once.
func (e *end) hurryAutovacuum(ctx context.Context) (do string, err error) {
	after, err := yields(ctx, e.conn)
	if err != nil || after == 0 {
		return "", e.fault(err)
	}
	return hurry(e.Name, e.conn.Config().User), nil
}

// autovacuum notes a server whose autovacuum gives way late.
func (l *planner) autovacuum(ctx context.Context) error {
	for _, s := range []standing{l.source, l.target} {
		after, err := yields(ctx, s.conn)
		if err != nil {
			return &topology.ServerError{Server: s.server, Err: err}
		}
		if after <= slowYield {
			continue
		}
		late := ""
		if after >= cleanTime {
			late = fmt.Sprintf(", and a cutover waits no longer than %s", cleanTime)
		}
		l.Notes = append(l.Notes, Obstacle{
			Server: s.server, Shard: -1, Object: "deadlock_timeout", Reason: fmt.Sprintf("an autovacuum of the shard's tables gives way after deadlock_timeout = %s, which the role %s may not shorten%s", after, s.user, late),
			Fix: hurry(s.server, s.user), Hosted: "deadlock_timeout = 1000 in the parameter group",
		})
	}
	return nil
}
