package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// A Job is what one [Mover] does: shards that are to move from one server to another, or that are in such
// a move.
type Job struct {
	Source, Target topology.Server
	Shards         []int64
	New            []int64 // those of them that are in no move yet
}

// Underway returns the moves that some shards are in, as all servers say. It leaves out shards that are
// in none.
func Underway(ctx context.Context, servers []topology.Server, shards []int64) ([]Job, error) {
	var jobs []Job
	seen := make(map[int64]bool)
	for _, s := range servers {
		rows, err := movesOf(ctx, s, shards)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if seen[r.Shard] {
				continue
			}
			seen[r.Shard] = true
			if jobs, err = add(jobs, servers, r.Source, r.Target, r.Shard, false); err != nil {
				return nil, err
			}
		}
	}
	return jobs, nil
}

type moveRow struct {
	Shard          int64
	Source, Target string
}

func movesOf(ctx context.Context, s topology.Server, shards []int64) (all []moveRow, err error) {
	err = s.Ask(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT shard, source, target FROM firn.move WHERE shard = ANY ($1) ORDER BY shard", shards)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[moveRow])
		}
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" { // of an older firn
		return nil, nil
	}
	return all, err
}

// add puts a shard into the job from one server to another.
func add(jobs []Job, servers []topology.Server, source, target string, n int64, fresh bool) ([]Job, error) {
	i := slices.IndexFunc(jobs, func(l Job) bool { return l.Source.Name == source && l.Target.Name == target })
	if i < 0 {
		var ends [2]topology.Server
		for k, name := range []string{source, target} {
			at := slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == name })
			if at < 0 {
				return nil, &UnaskedError{name, n, source, target}
			}
			ends[k] = servers[at]
		}
		i, jobs = len(jobs), append(jobs, Job{Source: ends[0], Target: ends[1]})
	}
	jobs[i].Shards = append(jobs[i].Shards, n)
	if fresh {
		jobs[i].New = append(jobs[i].New, n)
	}
	return jobs, nil
}

// An UnaskedError says that one server of a move is not among those that are named.
type UnaskedError struct {
	Server         string
	Shard          int64
	Source, Target string // of the move
}

func (e *UnaskedError) Error() string {
	return fmt.Sprintf("shard: shard %d is in a move from %s to %s, and server %s was not asked", e.Shard, e.Source, e.Target, e.Server)
}

// ErrNoMember says that the cluster has no server of that name.
var ErrNoMember = errors.New("shard: there is no such server in the cluster")

// Jobs asks all servers where shards are, and returns what is to be done so that all of them are on one
// server: a [Job] for each source. It leaves out shards that are there already. A shard that is in a
// move to another server gives an [*UnderwayError], a shard that no server serves a [*StuckError], and
// a server that is not in the cluster [ErrNoMember].
func Jobs(ctx context.Context, servers []topology.Server, shards []int64, to string) ([]Job, error) {
	under, err := Underway(ctx, servers, shards)
	if err != nil {
		return nil, err
	}
	moving := make(map[int64]Job)
	for _, l := range under {
		for _, n := range l.Shards {
			moving[n] = l
		}
	}
	m, views, err := check.ReadMap(ctx, servers)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(m.Servers, to) {
		return nil, fmt.Errorf("%w: %s", ErrNoMember, to)
	}
	var jobs []Job
	for _, n := range shards {
		route, ok := m.Route(n)
		l, under := moving[n]
		switch {
		case !ok:
			return nil, fmt.Errorf("shard: there is no such shard: %d", n)
		case under && l.Target.Name == to:
			jobs, err = add(jobs, servers, l.Source.Name, to, n, false)
		case under && lostDo(views, n) != "":
			return nil, &StuckError{n, "no server serves it", lostDo(views, n)}
		case under:
			serves := ""
			if route.State == topology.StateOpen {
				serves = route.Server
			}
			return nil, &UnderwayError{n, l.Source.Name, l.Target.Name, serves}
		case route.State != topology.StateOpen:
			return nil, &StuckError{n, cmp.Or(route.Why, "no server serves it"), cmp.Or(lostDo(views, n), copyDo(views, n), seeDoctor)}
		case route.Server != to:
			jobs, err = add(jobs, servers, route.Server, to, n, true)
		}
		if err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// An UnderwayError says that a shard is in a move to another server, which has to end first.
type UnderwayError struct {
	Shard          int64
	Source, Target string
	Serves         string // the server that serves it now, or ""
}

func (e *UnderwayError) Error() string {
	return fmt.Sprintf("shard %d is in a move from %s to %s, which is not finished", e.Shard, e.Source, e.Target)
}

// together is how many shards one move takes: all are copied before the first changes over,
// and all their tables are locked when it begins, for which a server has room.
const together = 32

// Split returns the same jobs in parts, of which none begins to move more than 32 shards.
func Split(jobs []Job) []Job {
	var parts []Job
	for _, l := range jobs {
		goOn := slices.DeleteFunc(slices.Clone(l.Shards), func(n int64) bool { return slices.Contains(l.New, n) })
		if len(goOn) > 0 {
			parts = append(parts, Job{Source: l.Source, Target: l.Target, Shards: goOn})
		}
		for some := range slices.Chunk(l.New, together) {
			parts = append(parts, Job{Source: l.Source, Target: l.Target, Shards: some, New: some})
		}
	}
	return parts
}
