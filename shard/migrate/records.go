package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// A Record says that a file was applied to a shard, or, of a file that runs outside
// of a transaction, that it has begun.
type Record struct {
	Number  int64
	Name    string
	Sum     string
	Begun   time.Time
	Applied time.Time // zero: it has begun, and did not end
	Role    string    // who did it
}

// A State is what all servers say, each at a moment of its own.
type State struct {
	Map     *topology.Map
	Records map[int64][]Record // by shard, in the order of their numbers
	Unseen  []int64            // shards that no server serves of those that were asked; of [LookFor]

	missing map[int64]bool // shards that have no table of records yet
}

// Record returns the record of a file on a shard, if there is one.
func (s *State) Record(shard, number int64) (Record, bool) {
	i := slices.IndexFunc(s.Records[shard], func(r Record) bool { return r.Number == number })
	if i < 0 {
		return Record{}, false
	}
	return s.Records[shard][i], true
}

// makeTable makes the table of records of a shard. The application's role gets what
// it gets of every table of the schema, by default privileges, but may only read
// this one.
func makeTable(schema string) string {
	return fmt.Sprintf(`
CREATE TABLE %[1]s (
	number  bigint PRIMARY KEY,
	name    text NOT NULL,
	sum     text NOT NULL,
	begun   timestamptz NOT NULL DEFAULT pg_catalog.now(),
	applied timestamptz,
	role    name NOT NULL DEFAULT session_user
);
COMMENT ON TABLE %[1]s IS 'SQL files that firn shard apply has applied to this shard';
DO $do$
DECLARE
	grantee text;
BEGIN
	FOR grantee IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::text END
		FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
		WHERE c.oid = %[2]s::pg_catalog.regclass AND a.grantee <> c.relowner
	LOOP
		EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON ' || %[2]s || ' FROM ' || grantee;
	END LOOP;
END $do$;`, table(schema), literal(table(schema)))
}

// table is the name of the table of records of a schema.
func table(schema string) string { return pgx.Identifier{schema, "firn_applied"}.Sanitize() }

// literal quotes a text.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Look asks all servers which files their shards have. It fails where a server does not answer or is not
// named: files are applied on all shards or on none.
func Look(ctx context.Context, servers []topology.Server) (*State, error) {
	return LookFor(ctx, servers, nil)
}

// LookFor is [Look] for files that only some shards get. A server of the cluster may be left out if the
// others serve all of these shards. [State.Unseen] are the shards that nobody was asked about.
func LookFor(ctx context.Context, servers []topology.Server, asked func(shard int64) bool) (*State, error) {
	m, _, err := check.ReadMap(ctx, servers)
	if err != nil {
		return nil, err
	}
	s := &State{Map: m, Records: map[int64][]Record{}, missing: map[int64]bool{}}
	if len(m.Missing) > 0 {
		if asked == nil {
			return nil, fmt.Errorf("server %s of the cluster is not named", m.Missing[0])
		}
		for n := range m.Keys.Shards() {
			if r, ok := m.Route(n); ok && r.State == topology.StateOpen {
				continue
			}
			if asked(n) {
				return nil, fmt.Errorf("server %s of the cluster is not named, and no server that is named serves shard %d", m.Missing[0], n)
			}
			s.Unseen = append(s.Unseen, n)
		}
	}
	return s, s.read(ctx, servers)
}

// read reads the records of the shards that are served.
func (s *State) read(ctx context.Context, servers []topology.Server) error {
	routes := map[string][]topology.Route{}
	for _, r := range s.Map.Routes {
		routes[r.Server] = append(routes[r.Server], r)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	failed := make([]error, len(servers))
	for i, server := range servers {
		wg.Go(func() {
			failed[i] = server.Ask(ctx, func(c *pgx.Conn) error { return s.readServer(ctx, c, routes[server.Name], &mu) })
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// checkOwner makes sure that whoever asks may change the shards: what another role
// makes belongs to that role, and has not the grants that it should.
func checkOwner(ctx context.Context, c *pgx.Conn) error {
	var owner, me string
	const who = "SELECT pg_catalog.pg_get_userbyid(nspowner), current_user FROM pg_catalog.pg_namespace WHERE nspname = 'firn'"
	if err := c.QueryRow(ctx, who).Scan(&owner, &me); err != nil {
		return err
	}
	if owner != me {
		return &OwnerError{owner, me}
	}
	return nil
}

// An OwnerError says that the role which connects does not own the shards.
type OwnerError struct{ Owner, User string }

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the shards belong to the role %s, not to %s", e.Owner, e.User)
}

// tablesAtOnce is how many shards are read by one statement, which takes a lock of
// two relations each. A server has room for some thousand.
const tablesAtOnce = 100

func (s *State) readServer(ctx context.Context, c *pgx.Conn, routes []topology.Route, mu *sync.Mutex) error {
	if err := checkOwner(ctx, c); err != nil {
		return err
	}
	rows, err := c.Query(ctx, `SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relname = 'firn_applied' AND c.relkind = 'r'`)
	if err != nil {
		return err
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(schemas))
	for _, name := range schemas {
		there[name] = true
	}
	var with []topology.Route
	mu.Lock()
	for _, r := range routes {
		if there[r.Schema] {
			with = append(with, r)
		} else {
			s.missing[r.Shard] = true
		}
	}
	mu.Unlock()
	for some := range slices.Chunk(with, tablesAtOnce) {
		if err := s.readTables(ctx, c, some, mu); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) readTables(ctx context.Context, c *pgx.Conn, routes []topology.Route, mu *sync.Mutex) error {
	parts := make([]string, len(routes))
	for i, r := range routes {
		parts[i] = fmt.Sprintf("SELECT %d::bigint AS shard, number, name, sum, begun, applied, role::text FROM %s", r.Shard, table(r.Schema))
	}
	rows, err := c.Query(ctx, strings.Join(parts, " UNION ALL ")+" ORDER BY shard, number")
	if err != nil {
		return err
	}
	var n int64
	var one Record
	var applied *time.Time
	_, err = pgx.ForEachRow(rows, []any{&n, &one.Number, &one.Name, &one.Sum, &one.Begun, &applied, &one.Role}, func() error {
		one.Applied = time.Time{}
		if applied != nil {
			one.Applied = *applied
		}
		mu.Lock()
		defer mu.Unlock()
		s.Records[n] = append(s.Records[n], one)
		return nil
	})
	return err
}

// A Use says which shards have a file.
type Use struct {
	Applied []int64
	Begun   []int64 // outside of a transaction, and did not end
	Changed []int64 // had another text
	Left    []int64 // do not have it
}

// Uses returns which shards have a file, of those that asked selects.
func (s *State) Uses(f File, asked func(shard int64) bool) (u Use) {
	for _, r := range s.Map.Routes {
		if !asked(r.Shard) {
			continue
		}
		list := &u.Applied
		switch record, ok := s.Record(r.Shard, f.Number); {
		case !ok:
			list = &u.Left
		case record.Applied.IsZero():
			list = &u.Begun
		case record.Sum != f.Sum:
			list = &u.Changed
		}
		*list = append(*list, r.Shard)
	}
	return u
}
