// Package check looks at the servers of a cluster of shards, and says what is wrong
// with them. It changes nothing.
package check

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/topology"
)

// A Server is what was found about one server.
type Server struct {
	Name string
	Err  error // it did not answer, or knows nothing of shards; the rest is zero then

	*topology.View
	Offset  time.Duration // how far its clock is ahead of this process's
	Error   time.Duration // by how much Offset may be wrong
	Bytes   int64         // of its database
	Writes  int64         // rows that were written to the database since the server counts
	At      time.Time     // when it was asked that
	Details *Details      // of [Examine]
	Owner   string        // of the schema firn, where the server denies another role a right; else empty
}

// Details are what only [Examine] reads, with the rights of the owner of the schema firn.
type Details struct {
	Settings   map[string]string
	Generators []Generator
	Schemas    []string // all of the database
	Setters    []string // roles besides the owner that may set the sequences of shards
}

// A Generator is what one generator of a shard is found to be.
type Generator struct {
	Shard     int64
	Name      string
	Sequences bool          // both are there
	Function  bool          // it is there
	Same      bool          // the offset is the one that was opened
	Running   bool          // draws count
	Ahead     time.Duration // of the server's clock
	Altered   []string      // its sequences that do not count one by one, with how they count
}

// Look looks at all servers at once, without details.
func Look(ctx context.Context, servers []topology.Server) []*Server { return all(ctx, servers, look) }

// Examine looks at all servers at once, with details.
func Examine(ctx context.Context, servers []topology.Server) []*Server {
	return all(ctx, servers, func(ctx context.Context, c *pgx.Conn, server topology.Server, s *Server) error {
		err := look(ctx, c, server, s)
		if err == nil {
			s.Details, err = details(ctx, c, s.Layout)
		}
		return err
	})
}

// patience is how long a server is waited for.
const patience = time.Minute

func all(ctx context.Context, servers []topology.Server, see func(context.Context, *pgx.Conn, topology.Server, *Server) error) []*Server {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := make([]*Server, len(servers))
	var each sync.WaitGroup
	for i, server := range servers {
		s := &Server{Name: server.Name}
		seen[i] = s
		each.Go(func() {
			s.Err = server.Ask(ctx, func(c *pgx.Conn) error {
				err := see(ctx, c, server, s)
				if denied(err) {
					s.Owner = owner(ctx, c)
				}
				return err
			})
		})
	}
	each.Wait()
	views := make([]*topology.View, len(seen))
	for i, s := range seen {
		views[i] = s.View
	}
	for i, s := range seen {
		if err := servers[i].Outside(s.View, s.Err, views); err != nil {
			*s = Server{Name: s.Name, Err: err}
		}
	}
	return seen
}

// denied reports whether a server denies the role a right.
func denied(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

// owner is the role that owns the schema firn; empty: it is the role of the connection, or nobody can say.
func owner(ctx context.Context, c *pgx.Conn) (role string) {
	const sql = "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'firn' AND pg_get_userbyid(nspowner) <> current_user"
	if err := c.QueryRow(ctx, sql).Scan(&role); err != nil {
		return ""
	}
	return role
}

func look(ctx context.Context, c *pgx.Conn, server topology.Server, s *Server) error {
	start := time.Now()
	v, err := server.LookAt(ctx, c)
	if err != nil {
		return err
	}
	took := time.Since(start)
	s.View = v
	s.Error = took / 2
	s.Offset = v.Clock.Sub(start.Add(took / 2))
	s.At = time.Now()
	err = c.QueryRow(ctx, `SELECT pg_database_size(current_database()), tup_inserted + tup_updated + tup_deleted
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&s.Bytes, &s.Writes)
	if err != nil {
		return &topology.ServerError{Server: s.Name, Err: err}
	}
	return nil
}

// settings are those that something depends on.
var settings = []string{
	"wal_level", "max_replication_slots", "max_wal_senders", "max_logical_replication_workers",
	"fsync", "full_page_writes",
}

// generatorsSQL reads the generators after one. Each sequence that it looks into stays locked until
// it ends, and a server has few locks for its thousands of shards, so it reads no more than pageSize.
const generatorsSQL = `
SELECT g.shard, g.name::text, x.there,
	to_regprocedure(format('%I.%I()', s.schema, g.name)) IS NOT NULL,
	g.identity IS NOT DISTINCT FROM g."offset"::oid,
	CASE WHEN x.there THEN pg_sequence_last_value(g."offset") IS NOT NULL ELSE false END,
	CASE WHEN x.there THEN coalesce(pg_sequence_last_value(g.counter) + pg_sequence_last_value(g."offset") - firn.now_state(), 0) ELSE 0 END,
	ARRAY(SELECT format('%s INCREMENT %s CACHE %s %s', q.seqrelid::regclass, q.seqincrement, q.seqcache, CASE WHEN q.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)
		FROM pg_sequence AS q WHERE q.seqrelid IN (g.counter, g."offset") AND (q.seqincrement <> 1 OR q.seqcache <> 1 OR q.seqcycle) ORDER BY 1)
FROM (SELECT * FROM firn.generator WHERE (shard, name) > ($1, $2::text::name) ORDER BY shard, name LIMIT $3) AS g JOIN firn.shard AS s ON s.shard = g.shard
CROSS JOIN LATERAL (SELECT count(*) = 2 AS there FROM pg_class WHERE oid IN (g.counter, g."offset")) AS x
ORDER BY g.shard, g.name`

const pageSize = 100

const settersSQL = `
SELECT DISTINCT coalesce(r.rolname::text, 'PUBLIC')
FROM firn.generator AS g JOIN pg_class AS c ON c.oid IN (g.counter, g."offset")
CROSS JOIN LATERAL aclexplode(c.relacl) AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee
WHERE a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner ORDER BY 1`

func details(ctx context.Context, c *pgx.Conn, l firn.Layout) (*Details, error) {
	d := &Details{Settings: make(map[string]string)}
	var errs []error
	each(ctx, c, &errs, "SELECT name, setting FROM pg_settings WHERE name = ANY($1)", func(row pgx.CollectableRow) error {
		var name, value string
		err := row.Scan(&name, &value)
		d.Settings[name] = value
		return err
	}, settings)
	d.Generators = generators(ctx, c, l, &errs)
	for _, list := range []struct {
		into *[]string
		sql  string
	}{
		{&d.Schemas, "SELECT nspname::text FROM pg_namespace ORDER BY 1"},
		{&d.Setters, settersSQL},
	} {
		each(ctx, c, &errs, list.sql, func(row pgx.CollectableRow) error {
			var text string
			err := row.Scan(&text)
			*list.into = append(*list.into, text)
			return err
		})
	}
	return d, errors.Join(errs...)
}

// generators are all of a server.
func generators(ctx context.Context, c *pgx.Conn, l firn.Layout, errs *[]error) (all []Generator) {
	seq, _ := l.Field("seq")
	for after := (Generator{Shard: -1}); ; after = all[len(all)-1] {
		had := len(all)
		each(ctx, c, errs, generatorsSQL, func(row pgx.CollectableRow) error {
			var g Generator
			var states int64
			err := row.Scan(&g.Shard, &g.Name, &g.Sequences, &g.Function, &g.Same, &g.Running, &states, &g.Altered)
			g.Ahead = time.Duration(states>>seq.Width) * l.Unit()
			all = append(all, g)
			return err
		}, after.Shard, after.Name, pageSize)
		if len(all) < had+pageSize {
			return all
		}
	}
}

// each has a function read every row of a query, and keeps the error, once.
func each(ctx context.Context, c *pgx.Conn, errs *[]error, sql string, read func(pgx.CollectableRow) error, args ...any) {
	rows, err := c.Query(ctx, sql, args...)
	if err == nil {
		defer rows.Close()
		for rows.Next() && err == nil {
			err = read(rows)
		}
		err = errors.Join(err, rows.Err())
	}
	if err != nil && !slices.ContainsFunc(*errs, func(other error) bool { return other.Error() == err.Error() }) {
		*errs = append(*errs, err)
	}
}
