package move

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

// A Plan says what a move would do, and what speaks against it.
type Plan struct {
	Source, Target string
	Shards         []ShardPlan
	Obstacles      []Obstacle
	Notes          []Obstacle    // what may be one: only a person can judge
	WALRate        float64       // of the source, in bytes a second
	Free           int64         // of the target's disk, in bytes; -1: not known
	Pause          time.Duration // for which a shard is likely to take no writes, where both servers are idle
	PauseMost      time.Duration // the same under the load that was measured
	Measured       Measured

	asked    []int64
	from, to string // servers with their versions
}

// A ShardPlan says what of one shard moves.
type ShardPlan struct {
	Shard   int64
	Schema  string
	Tables  int64
	Rows    int64 // as the server estimates
	Bytes   int64
	Holders []Holder // transactions that would have to end before the cutover now
}

// Bytes returns the size of all shards.
func (p *Plan) Bytes() (n int64) {
	for _, s := range p.Shards {
		n += s.Bytes
	}
	return n
}

// Err returns a [*RefusedError] where something speaks against the move, and else nil.
func (p *Plan) Err() error {
	if len(p.Obstacles) == 0 {
		return nil
	}
	return &RefusedError{p.asked, p.from, p.to, p.Obstacles}
}

// NewPlan looks at two servers, and says what a move of these shards would do and what speaks against
// it. It changes nothing. Where goesOn is set, the move has begun, and the plan has only what it still
// needs. A server that restarts is waited for.
func NewPlan(ctx context.Context, source, target topology.Server, shards []int64, goesOn bool, o *Options) (p *Plan, err error) {
	err = patiently(ctx, defaultPatience, func() (err error) {
		p, err = planOnce(ctx, source, target, shards, goesOn, o.orDefault())
		return err
	})
	return p, err
}

func planOnce(ctx context.Context, source, target topology.Server, shards []int64, goesOn bool, o Options) (*Plan, error) {
	l := &planner{Plan: Plan{Source: source.Name, Target: target.Name}, goesOn: goesOn, options: o}
	for i, s := range []topology.Server{source, target} {
		c, err := s.Connect(ctx)
		if err != nil {
			return nil, err
		}
		defer c.Close(context.WithoutCancel(ctx))
		if _, err := c.Exec(ctx, "SET statement_timeout = 0"); err != nil { // that of the role would end the plan that names it
			return nil, &topology.ServerError{Server: s.Name, Err: err}
		}
		p, err := stand(ctx, s.Name, c)
		if err != nil {
			return nil, &topology.ServerError{Server: s.Name, Err: err}
		}
		[]*standing{&l.source, &l.target}[i].conn = c
		[]*standing{&l.source, &l.target}[i].post = p
	}
	l.asked, l.from, l.to = shards, versionOf(source.Name, l.source.View), versionOf(target.Name, l.target.View)
	if err := l.look(ctx, shards); err != nil {
		return nil, err
	}
	return &l.Plan, nil
}

// A planner makes a plan.
type planner struct {
	Plan
	goesOn         bool
	options        Options
	source, target standing
}

type standing struct {
	*post
	conn *pgx.Conn
}

func (l *planner) look(ctx context.Context, shards []int64) error {
	if l.source.View.Cluster != l.target.View.Cluster || l.source.View.Cluster == "" {
		return fmt.Errorf("shard: servers %s and %s are not of one cluster", l.Source, l.Target)
	}
	if err := check.RefuseTwins(map[string]*topology.View{l.Source: l.source.View, l.Target: l.target.View}); err != nil {
		return err
	}
	code, err := install.Code(l.source.Layout)
	if err != nil {
		return err
	}
	if l.source.current(code) { // else there may be nothing to ask with
		for _, n := range shards {
			if err := l.shard(ctx, n); err != nil {
				return &topology.ServerError{Server: l.Source, Err: err}
			}
		}
	}
	if l.source.current(code) && l.target.current(code) {
		if err := l.secrets(ctx); err != nil {
			return err
		}
	}
	l.passwords()
	if err := l.readers(ctx); err != nil {
		return err
	}
	if err := l.autovacuum(ctx); err != nil {
		return err
	}
	var schemas []string
	for _, s := range l.Shards {
		schemas = append(schemas, s.Schema)
	}
	roles, err := names(ctx, l.source.conn, rolesSQL, schemas)
	if err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	extensions, err := names(ctx, l.source.conn, extensionsSQL, schemas)
	if err != nil {
		return &topology.ServerError{Server: l.Source, Err: err}
	}
	var from, to needs
	bytes := l.Bytes()
	if l.goesOn {
		bytes = 0
	} else {
		// Each table's first copy has a slot, a sender, a worker and an origin of its own.
		sync := l.target.syncWorkers
		from = needs{slots: 1 + sync, origins: 1, senders: 1 + sync, workers: 1}
		to = needs{slots: 1, origins: 1 + sync, senders: 1, workers: 1 + sync}
	}
	l.Obstacles = slices.Concat(l.source.onServer(from, code), l.target.onServer(to, code), l.source.between(l.target.post, bytes, roles, extensions), l.Obstacles)
	l.Free = l.target.disk
	return l.measure(ctx)
}

// secrets says which server would record a password with which it reaches the other one.
func (l *planner) secrets(ctx context.Context) error {
	for _, s := range [][2]*standing{{&l.source, &l.target}, {&l.target, &l.source}} {
		e, other := s[0], s[1]
		if !hasPassword(reached(l.options, other.server, other.conn.Config())) {
			continue
		}
		rows, err := e.conn.Query(ctx, "SELECT setting, value FROM firn.password_leaks()")
		if err != nil {
			return &topology.ServerError{Server: e.server, Err: err}
		}
		var setting, value string
		_, err = pgx.ForEachRow(rows, []any{&setting, &value}, func() error {
			l.Obstacles = append(l.Obstacles, Obstacle{
				Server: e.server, Shard: -1, Object: setting, Reason: fmt.Sprintf("it would record the password of %s: %s = %s, which %s may not change", other.server, setting, value, e.user),
				Fix: fmt.Sprintf("GRANT SET ON PARAMETER %s TO %s, from PostgreSQL 15 on; or set it otherwise", setting, identifier(e.user)),
			})
			return nil
		})
		if err != nil {
			return &topology.ServerError{Server: e.server, Err: err}
		}
	}
	return nil
}

// passwords says which server's subscription would be refused, because PostgreSQL wants a password of it: from 16 on,
// where a role that is no superuser may subscribe.
func (l *planner) passwords() {
	for _, s := range [][2]*standing{{&l.source, &l.target}, {&l.target, &l.source}} {
		e, other := s[0], s[1]
		if e.superuser || e.Version < 160000 || hasPassword(reached(l.options, other.server, other.conn.Config())) {
			continue
		}
		l.Obstacles = append(l.Obstacles, Obstacle{
			Server: e.server, Shard: -1, Object: "address of " + other.server,
			Reason: fmt.Sprintf("a subscription of role %q needs a password in the address of %s", e.user, other.server),
			Fix:    fmt.Sprintf("give that address a password, with PGPASSWORD or ~/.pgpass too; or --address %s=postgres://USER:PASSWORD@HOST/DATABASE", other.server),
		})
	}
}

// shard adds one shard to the plan.
func (l *planner) shard(ctx context.Context, n int64) error {
	refuse := func(server, fix, format string, args ...any) {
		l.Obstacles = append(l.Obstacles, Obstacle{Server: server, Shard: n, Object: fmt.Sprintf("shard %d", n), Reason: fmt.Sprintf(format, args...), Fix: fix})
	}
	i := slices.IndexFunc(l.source.Shards, func(r topology.Row) bool { return r.Shard == n })
	switch {
	case i < 0:
		refuse(l.Source, "firn shard where "+strconv.FormatInt(n, 10), "it is not there")
		return nil
	case l.source.Shards[i].State == topology.StateMoved:
		refuse(l.Source, "", "it has moved to %s", l.source.Shards[i].MovedTo)
		return nil
	case l.source.Shards[i].State != topology.StateOpen || !l.source.Shards[i].Here:
		refuse(l.Source, "firn shard reopen "+l.Source, "it is not open there")
		return nil
	}
	s := ShardPlan{Shard: n, Schema: l.source.Shards[i].Schema}
	err := l.source.conn.QueryRow(ctx, `SELECT count(*), coalesce(sum(greatest(c.reltuples, pg_stat_get_live_tuples(c.oid))), 0)::bigint, coalesce(sum(pg_total_relation_size(r.relation)), 0)::bigint
		FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE r.rows`, s.Schema).Scan(&s.Tables, &s.Rows, &s.Bytes)
	if err != nil {
		return err
	}
	if s.Holders, err = holders(ctx, l.source.conn, s.Schema, lockPatience); err != nil {
		return err
	}
	l.Shards = append(l.Shards, s)
	found, err := inTheWay(ctx, l.source.conn, l.Source, n, s.Schema, max(l.source.Version, l.target.Version))
	if err != nil {
		return err
	}
	l.Obstacles = append(l.Obstacles, found...)
	found, notes, err := outsiders(ctx, l.source.conn, leaving{l.Source, l.Target, n, s.Schema}, l.options.Consumers)
	if err != nil {
		return err
	}
	l.Obstacles, l.Notes = append(l.Obstacles, found...), append(l.Notes, notes...)
	if l.goesOn {
		return nil
	}
	for _, p := range []*post{l.source.post, l.target.post} {
		if batch := p.moves[n]; batch != "" {
			refuse(p.server, "to see what to do: firn shard status", "another move of it is under way, %s", batch)
		}
	}
	j := slices.IndexFunc(l.target.Shards, func(r topology.Row) bool { return r.Shard == n })
	if j >= 0 && l.target.Shards[j].State != topology.StateMoved {
		refuse(l.Target, "firn shard doctor", "it is %s there too", l.target.Shards[j].State)
	} else if j >= 0 && !l.target.Shards[j].Here {
		refuse(l.Target, "firn shard reopen "+l.Target, "what %s knows of it is from before the server was put back, copied or promoted", l.Target)
	} else if slices.Contains(l.target.schemas, s.Schema) {
		text, do, err := inWay(ctx, l.target.conn, l.Target, n, s.Schema)
		if err != nil {
			return &topology.ServerError{Server: l.Target, Err: err}
		}
		refuse(l.Target, do, "%s", text)
	}
	return nil
}

// lockPatience is how old a transaction may be that a cutover waits for.
const lockPatience = 30 * time.Millisecond
