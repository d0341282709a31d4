package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// A site is what is found at one server before anything is changed there.
type site struct {
	server topology.Server
	view   *topology.View // nil: it knows nothing of shards

	system   int64 // with database: whether two names are of one place
	database string
	version  int
	ahead    time.Duration // how far its clock is ahead of this process's
	standby  bool
	readOnly bool

	user          string
	mayCreate     bool   // schemas
	mayCreateRole bool   //
	owner         string // of the schema firn; empty: there is none
	owns          bool   // the user is that
	roles         []string
	schemas       map[string]bool
	broken        map[int64]bool // shards that lack a sequence or function of a generator
	uncallable    []uncallable
}

// oldest is the oldest PostgreSQL there is support for.
const oldest = 140000

const siteSQL = `
SELECT (pg_control_system()).system_identifier, current_database()::text, current_setting('server_version_num')::integer,
	pg_is_in_recovery(), current_setting('transaction_read_only')::boolean,
	current_user::text, has_database_privilege(current_database(), 'CREATE'),
	(SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user),
	coalesce((SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'firn'), ''),
	coalesce((SELECT r.rolname = current_user FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner WHERE n.nspname = 'firn'), false),
	ARRAY(SELECT rolname::text FROM pg_roles), ARRAY(SELECT nspname::text FROM pg_namespace), clock_timestamp()`

// look finds out about a server. With an error of its owner it returns what it found.
func look(ctx context.Context, s topology.Server) (t *site, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	err = s.Ask(ctx, func(c *pgx.Conn) (err error) {
		t, err = lookAt(ctx, c, s)
		return err
	})
	return t, err
}

func lookAt(ctx context.Context, c *pgx.Conn, s topology.Server) (_ *site, err error) {
	t := &site{server: s, schemas: map[string]bool{}, broken: map[int64]bool{}}
	var schemas []string
	var clock time.Time
	if err := t.findUncallable(ctx, c); err != nil {
		return nil, err
	}
	asked := time.Now()
	if err := c.QueryRow(ctx, siteSQL).Scan(&t.system, &t.database, &t.version, &t.standby, &t.readOnly,
		&t.user, &t.mayCreate, &t.mayCreateRole, &t.owner, &t.owns, &t.roles, &schemas, &clock); err != nil {
		return nil, &topology.ServerError{Server: s.Name, Err: err}
	}
	t.ahead = clock.Sub(asked) // by less than lookPatience wrong
	for _, schema := range schemas {
		t.schemas[schema] = true
	}
	if err := t.usable(); err != nil {
		return t, err
	}
	t.view, err = s.LookAt(ctx, c)
	switch {
	case errors.As(err, new(*topology.UnrecordedError)):
		return nil, err
	case errors.Is(err, topology.ErrNoCluster):
		return t, nil
	case err != nil:
		return nil, err
	}
	if err := t.findBroken(ctx, c); err != nil {
		return nil, &topology.ServerError{Server: s.Name, Err: err}
	}
	return t, nil
}

const brokenSQL = `
SELECT g.shard FROM firn.generator AS g JOIN firn.shard AS s ON s.shard = g.shard
WHERE to_regprocedure(format('%I.%I()', s.schema, g.name)) IS NULL OR (SELECT count(*) FROM pg_class WHERE oid IN (g.counter, g."offset")) < 2`

func (t *site) findBroken(ctx context.Context, c *pgx.Conn) error {
	rows, err := c.Query(ctx, brokenSQL)
	if err != nil {
		return err
	}
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&n}, func() error { t.broken[n] = true; return nil })
	return err
}

const lookPatience = 30 * time.Second

// usable says why nothing can be made on a server, or nil.
func (t *site) usable() error {
	switch {
	case t.version < oldest:
		return t.fault("it is PostgreSQL %d.%d; 14 is the oldest that is supported", t.version/10000, t.version%10000)
	case t.standby:
		return t.fault("it is a standby: shards are made on its primary")
	case t.readOnly:
		return t.fault("its transactions are read only")
	case t.owner != "" && !t.owns:
		return &topology.ServerError{Server: t.server.Name, Err: &OwnerError{t.owner, t.user}}
	case !t.mayCreate:
		return t.fault("the role %s may not create schemas in the database %s: GRANT CREATE ON DATABASE %s TO %s", t.user, t.database, identifier(t.database), identifier(t.user))
	}
	return nil
}

// An OwnerError says that the schema firn of a server belongs to another role than the one that
// connects. It is in a [*topology.ServerError].
type OwnerError struct{ Owner, User string }

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the schema firn belongs to the role %s, and this is %s", e.Owner, e.User)
}

func (t *site) fault(format string, args ...any) error {
	return &topology.ServerError{Server: t.server.Name, Err: fmt.Errorf(format, args...)}
}

// Servers are all servers that something is done to, each looked at, and locked
// against others who do such things.
type Servers struct {
	sites   []*site
	release func() // nil: they are not locked
}

// Open looks at servers. It changes nothing, and fails where one is away or cannot be
// used. The locks last until Close; without them what follows can only be a plan.
func Open(ctx context.Context, servers []topology.Server, locked bool) (*Servers, error) {
	s := &Servers{sites: make([]*site, len(servers))}
	if err := s.look(ctx, servers); err != nil || !locked {
		return s, err
	}
	release, err := install.LockAll(ctx, servers)
	if err == nil {
		s.release = release
		err = s.look(ctx, servers) // somebody may have been at work before
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Servers) look(ctx context.Context, servers []topology.Server) error {
	err := atonce.Each(servers, func(i int, server topology.Server) (err error) {
		s.sites[i], err = look(ctx, server)
		return err
	})
	if err != nil {
		return differentOwners(s.sites, err)
	}
	return distinct(s.sites)
}

// Close gives the locks back.
func (s *Servers) Close() {
	if s.release != nil {
		s.release()
	}
}

// distinct says which two names are of one database, or nil.
func distinct(sites []*site) error {
	for i, t := range sites {
		for _, other := range sites[:i] {
			if t.system == other.system && t.database == other.database {
				return fmt.Errorf("shard: servers %s and %s are one database, %s: give each server the address of its own database", other.server.Name, t.server.Name, t.database)
			}
		}
	}
	return nil
}
