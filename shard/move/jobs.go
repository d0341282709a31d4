package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/check"
)

// A Job is shards that are in moves, or are to move, from one server to another.
type Job struct {
	Source, Target shard.Server
	Shards         []int64
	New            []int64 // those of them that are in no move yet
}

// Underway are the moves of shards that are under way, or not finished, by what all servers
// say. Shards that are in none are left out.
func Underway(ctx context.Context, servers []shard.Server, shards []int64) ([]Job, error) {
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

func movesOf(ctx context.Context, s shard.Server, shards []int64) ([]moveRow, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	rows, err := c.Query(ctx, "SELECT shard, source, target FROM firn.move WHERE shard = ANY ($1) ORDER BY shard", shards)
	var all []moveRow
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[moveRow])
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" { // of an older firn
		return nil, nil
	}
	if err != nil {
		return nil, &shard.ServerError{Server: s.Name, Err: err}
	}
	return all, nil
}

// add puts a shard into the job from one server to another.
func add(jobs []Job, servers []shard.Server, source, target string, n int64, fresh bool) ([]Job, error) {
	i := slices.IndexFunc(jobs, func(l Job) bool { return l.Source.Name == source && l.Target.Name == target })
	if i < 0 {
		var ends [2]shard.Server
		for k, name := range []string{source, target} {
			at := slices.IndexFunc(servers, func(s shard.Server) bool { return s.Name == name })
			if at < 0 {
				return nil, fmt.Errorf("shard: server %s is not named, and shard %d is in a move from %s to %s", name, n, source, target)
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

// ErrNoMember: the server is none of the cluster's, or not any more.
var ErrNoMember = errors.New("shard: there is no such server in the cluster")

// Jobs plans the way of shards to a server from wherever they are, which all servers are
// asked. Those that are there already are left out.
func Jobs(ctx context.Context, servers []shard.Server, shards []int64, to string) ([]Job, error) {
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
	views := make(map[string]*shard.View)
	for _, a := range shard.Ask(ctx, servers) {
		if a.Err != nil {
			return nil, a.Err
		}
		views[a.Server.Name] = a.View
	}
	m, err := shard.MapOf(views)
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
			return nil, fmt.Errorf("shard: %w: %d", shard.ErrNoShard, n)
		case under && l.Target.Name == to:
			jobs, err = add(jobs, servers, l.Source.Name, to, n, false)
		case under && lostDo(views, n) != "":
			return nil, &StuckError{n, "no server serves it", lostDo(views, n)}
		case under:
			serves := ""
			if route.State == shard.StateOpen {
				serves = route.Server
			}
			return nil, &UnderwayError{n, l.Source.Name, l.Target.Name, serves}
		case route.State != shard.StateOpen:
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

// lostDo says what opens a shard that no server serves and no move opens, or "".
func lostDo(views map[string]*shard.View, n int64) string {
	if o, lost := check.OpeningOf(views, n); lost {
		return o.Text()
	}
	return ""
}

// copyDo says what to do about a shard that no server serves because a server is a copy, or "".
func copyDo(views map[string]*shard.View, n int64) string {
	if server := check.CopyOf(views, n); server != "" {
		return check.ReopenCopy(server)
	}
	return ""
}

// An UnderwayError says that a shard is in another move, which has to end first.
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

// Split returns jobs again, of which none begins to move more than 32 shards.
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
