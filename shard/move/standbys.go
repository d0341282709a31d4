package move

import (
	"context"
	"fmt"
	"time"
)

// A StandbyError says that a standby of the target lacks what the target has: without the source's copy,
// some rows would be on the target alone.
type StandbyError struct{ Server, Standby string }

func (e *StandbyError) Error() string {
	return fmt.Sprintf("server %s: its standby %s is behind: the old copy is the only other one of what it has not received", e.Server, e.Standby)
}

const behindSQL = `
SELECT coalesce(min(coalesce(nullif(r.application_name, ''), r.pid::text)), '') FROM pg_stat_replication AS r
WHERE r.state IN ('streaming', 'catchup') AND coalesce(r.replay_lsn, r.flush_lsn, '0/0') < $1::text::pg_lsn
	AND NOT EXISTS (SELECT FROM pg_replication_slots AS s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`

// awaitStandbys waits until the standbys of the target have what it has now.
func (m *Mover) awaitStandbys(ctx context.Context) error {
	if err := m.target.connect(ctx); err != nil {
		return err
	}
	var position, behind string
	if err := m.target.conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&position); err != nil {
		return m.target.fault(err)
	}
	for begun := time.Now(); ; {
		if err := m.target.conn.QueryRow(ctx, behindSQL, position).Scan(&behind); err != nil {
			return m.target.fault(err)
		}
		switch {
		case behind == "":
			return nil
		case time.Since(begun) > m.options.Patience:
			return &StandbyError{m.target.Name, behind}
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}
