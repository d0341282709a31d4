package setup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

// A Reopening is what is to be done to a server that was promoted, restored or copied,
// or on which shards are closed.
type Reopening struct {
	Server string
	Shards []shard.Row // to be opened
	Left   []Left      // not to be opened
}

// Left is a shard that stays as it is.
type Left struct {
	Shard int64
	Why   string
}

// PlanReopen says which shards of a server may be opened there, by what all servers
// say. A server of the cluster that has not answered, or was not asked, has to be named
// as gone: what it serves would otherwise be served twice. Shards that are asked for by
// name are opened anew even if they serve; without asking all are meant that do not.
func PlanReopen(server string, views map[string]*shard.View, away, gone []string, asked func(shard int64) bool) (*Reopening, error) {
	v := views[server]
	if v == nil {
		return nil, fmt.Errorf("shard: server %s does not answer", server)
	}
	m, err := shard.MapOf(views)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(away, m.Missing) {
		if !slices.Contains(gone, name) {
			return nil, &AwayError{server, name}
		}
	}
	if v.Standby {
		return nil, fmt.Errorf("shard: server %s is a standby: promote it first", server)
	}
	r := &Reopening{Server: server}
	for _, row := range v.Shards {
		serves := row.State == shard.StateOpen && row.Here
		if asked == nil && serves || asked != nil && !asked(row.Shard) {
			continue
		}
		if why := whyNot(row, server, views); why != "" {
			r.Left = append(r.Left, Left{row.Shard, why})
		} else {
			r.Shards = append(r.Shards, row)
		}
	}
	return r, nil
}

// An AwayError says that a server could not be asked whether it serves what is to be
// opened.
type AwayError struct{ Server, Away string }

func (e *AwayError) Error() string {
	return fmt.Sprintf("shard: server %s has not answered: what it serves must not be opened on %s", e.Away, e.Server)
}

// whyNot says why a shard must not be opened on a server, or nothing.
func whyNot(row shard.Row, server string, views map[string]*shard.View) string {
	if row.State == shard.StateMoved {
		return "it has moved to " + row.MovedTo
	}
	for name, v := range views {
		i := slices.IndexFunc(v.Shards, func(other shard.Row) bool { return other.Shard == row.Shard })
		if name == server || i < 0 {
			continue
		}
		switch other := v.Shards[i]; {
		case other.State == shard.StateOpen && other.Here:
			return "it is open on " + name
		case other.Term > row.Term && other.State == shard.StateMoved:
			return fmt.Sprintf("it is moving from %s to %s", name, other.MovedTo)
		case other.Term > row.Term:
			return fmt.Sprintf("%s has had it since: the term there is %d, and %d here", name, other.Term, row.Term)
		}
	}
	return ""
}

// Above is the state above which shards are opened: that of the latest of some clocks,
// told by how far they are ahead of this process's, and a margin, by which the ids of a
// server that was lost may have been ahead of its clock.
func Above(l firn.Layout, now time.Time, offsets []time.Duration, margin time.Duration) (state int64) {
	ahead := slices.Max(append(offsets, 0))
	seq, _ := l.Field("seq")
	return int64(l.Tick(now.Add(ahead+margin))) << seq.Width
}

// Reopen opens one shard of a plan, above a state, if its row is still the one that the
// plan was made of.
func Reopen(ctx context.Context, conn *pgx.Conn, row shard.Row, above int64) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var term int64
		var state shard.State
		err := tx.QueryRow(ctx, "SELECT term, state FROM firn.shard WHERE shard = $1 FOR UPDATE", row.Shard).Scan(&term, &state)
		if err != nil {
			return err
		}
		if term != row.Term || state != row.State {
			return fmt.Errorf("shard: shard %d was %s at term %d, and is %s at %d: somebody else works on it", row.Shard, row.State, row.Term, state, term)
		}
		_, err = tx.Exec(ctx, "SELECT firn.open($1, $2)", row.Shard, above)
		return err
	})
}
