package move

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

const postSQL = `
SELECT r.rolsuper, r.rolreplication OR coalesce((SELECT pg_has_role(x.oid, 'USAGE') FROM pg_roles AS x WHERE x.rolname = 'rds_replication'), false), coalesce((SELECT pg_has_role(x.oid, 'USAGE') FROM pg_roles AS x WHERE x.rolname = 'pg_create_subscription'), false),
	has_database_privilege(current_database(), 'CREATE'), pg_has_role('pg_read_all_stats', 'USAGE'),
	r.rolname::text, current_database()::text, concat_ws(' ', pg_encoding_to_char(d.encoding), d.datcollate, d.datctype, to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale'),
	current_setting('transaction_read_only')::boolean, current_setting('wal_level'), current_setting('synchronous_standby_names'),
	current_setting('max_replication_slots')::bigint, (SELECT count(*) FROM pg_replication_slots),
	coalesce(current_setting('max_active_replication_origins', true), current_setting('max_replication_slots'))::bigint, (SELECT count(*) FROM pg_replication_origin),
	current_setting('max_wal_senders')::bigint, (SELECT count(*) FROM pg_stat_replication),
	current_setting('max_logical_replication_workers')::bigint, (SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL),
	current_setting('max_sync_workers_per_subscription')::bigint,
	ARRAY(SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout') AND reset_val <> '0' ORDER BY 1),
	ARRAY(SELECT gid FROM pg_prepared_xacts ORDER BY 1),
	ARRAY(SELECT p.pubname::text FROM pg_publication AS p WHERE to_jsonb(p)->>'puballsequences' = 'true' ORDER BY 1),
	ARRAY(SELECT ARRAY[g.rolname, m.rolname]::text[] FROM pg_auth_members AS a JOIN pg_roles AS g ON g.oid = a.roleid JOIN pg_roles AS m ON m.oid = a.member
		WHERE NOT a.admin_option AND NOT m.rolsuper ORDER BY 1),
	ARRAY(SELECT rolname::text FROM pg_roles), ARRAY(SELECT extname::text FROM pg_extension), ARRAY(SELECT nspname::text FROM pg_namespace)
FROM pg_roles AS r, pg_database AS d WHERE r.rolname = current_user AND d.datname = current_database()`

// stand finds out about a server.
func stand(ctx context.Context, name string, c *pgx.Conn) (*post, error) {
	p := &post{server: name, disk: -1, moves: map[int64]string{}}
	var err error
	if p.View, err = topology.Look(ctx, c); err != nil {
		return nil, err
	}
	if err := c.QueryRow(ctx, postSQL).Scan(&p.superuser, &p.replication, &p.subscribes, &p.createsInDatabase, &p.monitors,
		&p.user, &p.database, &p.locale, &p.readOnly, &p.walLevel, &p.standbys, &p.slots.most, &p.slots.used, &p.origins.most, &p.origins.used,
		&p.senders.most, &p.senders.used, &p.worker.most, &p.worker.used, &p.syncWorkers, &p.timeouts, &p.prepared, &p.allSequences,
		&p.members, &p.roles, &p.extensions, &p.schemas); err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, "SELECT shard, batch FROM firn.move")
	if err == nil {
		var n int64
		var batch string
		_, err = pgx.ForEachRow(rows, []any{&n, &batch}, func() error { p.moves[n] = batch; return nil })
	}
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if p.superuser && !p.Standby {
		p.disk = diskOf(ctx, c)
	}
	return p, nil
}

// isMissing says that a table or function is not there: the server's SQL is of a firn
// that moved nothing.
func isMissing(err error) bool {
	code := sqlstate(err)
	return code == "42P01" || code == "42883"
}

// inRecovery says that a server is a standby, which does not say how far its WAL is.
func inRecovery(err error) bool { return sqlstate(err) == "55000" }

// diskOf is how much of the server's disk is free, as df says there; -1 where that
// cannot be known, as on a hosted server.
func diskOf(ctx context.Context, c *pgx.Conn) int64 {
	tx, err := c.Begin(ctx)
	if err != nil {
		return -1
	}
	defer tx.Rollback(ctx)
	var lines []string
	if _, err = tx.Exec(ctx, "CREATE TEMPORARY TABLE firn_disk (line text)"); err == nil {
		// The server runs it in its data directory.
		if _, err = tx.Exec(ctx, "COPY firn_disk FROM PROGRAM 'df -Pk .'"); err == nil {
			lines, err = names(ctx, tx, "SELECT line FROM firn_disk")
		}
	}
	if err != nil || len(lines) < 2 {
		return -1
	}
	columns := strings.Fields(lines[1])
	if len(columns) < 4 {
		return -1
	}
	kilobytes, err := strconv.ParseInt(columns[3], 10, 64)
	if err != nil {
		return -1
	}
	return kilobytes << 10
}

// A post is what a server has and lets one do, as far as moves need it.
type post struct {
	server string
	*topology.View

	superuser, replication, subscribes, createsInDatabase, monitors bool
	user, database, locale                                          string
	readOnly                                                        bool

	walLevel, standbys              string
	slots, origins, senders, worker free
	syncWorkers                     int64
	timeouts                        []string   // settings that end long work of the role
	prepared                        []string   // transactions
	allSequences                    []string   // publications
	members                         [][]string // a role, and one that has its rights
	roles, extensions, schemas      []string   // that are there
	moves                           map[int64]string
	disk                            int64 // bytes that are free; -1: not known
}

// free is how many there may be of something, and are.
type free struct{ most, used int64 }

func (f free) left() int64 { return f.most - f.used }

// needs are what a server needs for a move: of a source or of a target.
type needs struct{ slots, origins, senders, workers int64 }

// A cause is what may keep a server from taking part in a move.
type cause struct {
	is             bool
	object, reason string
	fix, hosted    string // as in an Obstacle
}

// obstaclesOf are the causes that a server has, as obstacles.
func obstaclesOf(server string, causes []cause) []Obstacle {
	var all []Obstacle
	for _, c := range causes {
		if c.is {
			all = append(all, Obstacle{Server: server, Shard: -1, Object: c.object, Reason: c.reason, Fix: c.fix, Hosted: c.hosted})
		}
	}
	return all
}

// current says whether all functions of the server are of this firn. While a newer firn writes its own, the code is
// that of before; the version is there with the first of them.
func (p *post) current(code string) bool { return p.Code == code && p.SQL == install.SQLVersion }

// onServer are the obstacles of a server that moves shards out or in, whatever the shard.
func (p *post) onServer(n needs, code string) []Obstacle {
	causes := []cause{
		{p.Standby || p.readOnly, "address", "it takes no writes", "give the address of the primary", ""},
		{
			!p.Standby && !p.Itself, "incarnation", "it is a copy, or was promoted, restored or renamed, and was not reopened",
			fmt.Sprintf("where what it is a copy of is permanently gone: firn shard reopen %s", p.server), "",
		},
		{!p.current(code) && p.SQL <= install.SQLVersion, "functions of firn", "its functions are of another version of firn", "firn shard init, with this version of firn on all servers", ""},
		{p.SQL > install.SQLVersion, "functions of firn", "a newer firn wrote its functions", "the same command with that firn, or a later one", ""},
		{
			p.walLevel != "logical", "wal_level", fmt.Sprintf("wal_level is %q, must be \"logical\"", p.walLevel),
			"ALTER SYSTEM SET wal_level = 'logical', then restart", "rds.logical_replication = 1 in the parameter group, then reboot",
		},
	}
	for _, s := range []struct {
		setting, one, several string
		free
		needed int64
	}{
		{"max_replication_slots", "more replication slot is", "more replication slots are", p.slots, n.slots},
		{"max_replication_slots", "more replication origin is", "more replication origins are", p.origins, n.origins},
		{"max_wal_senders", "more sender of WAL is", "more senders of WAL are", p.senders, n.senders},
		{"max_logical_replication_workers", "more worker of logical replication is", "more workers of logical replication are", p.worker, n.workers},
	} {
		causes = append(causes, cause{
			s.left() < s.needed, s.setting, fmt.Sprintf("%s needed, and %s = %d leaves %d", phrase.Counted(int64(s.needed), s.one, s.several), s.setting, s.most, max(0, s.left())),
			fmt.Sprintf("ALTER SYSTEM SET %s = %d (or more), then restart", s.setting, s.used+s.needed),
			fmt.Sprintf("%s = %d or more in the parameter group, then reboot", s.setting, s.used+s.needed),
		})
	}
	return obstaclesOf(p.server, slices.Concat(causes, p.rights(), p.limits(), []cause{
		{
			strings.Contains(p.standbys, "*"), "synchronous_standby_names", fmt.Sprintf("synchronous_standby_names = '%s' would take a copy of a shard for a standby", p.standbys),
			"name the standbys there", "",
		},
		{len(p.prepared) > 0, "prepared transactions", "prepared transactions: " + phrase.Few(p.prepared), "COMMIT PREPARED or ROLLBACK PREPARED", ""},
		{len(p.allSequences) > 0, "publications", "publications of all sequences would open generators that are closed: " + phrase.Few(p.allSequences), "drop them", ""},
	}))
}

// rights are the causes that are about what the role may do.
func (p *post) rights() []cause {
	role, user := "role "+p.user, identifier(p.user)
	switch {
	case p.superuser:
		return nil
	case p.Version < 160000: // a superuser has all rights that are named below
		return []cause{{
			true, role, fmt.Sprintf("before PostgreSQL 16 only a superuser may subscribe, and %s is none", p.user),
			"give all addresses with a superuser's name, for moves only: --server NAME=postgres://SUPERUSER@HOST/DATABASE", "upgrade to PostgreSQL 16 or newer first",
		}}
	}
	return []cause{
		{
			!(p.subscribes && p.createsInDatabase), role, fmt.Sprintf("role %q may not create subscriptions", p.user),
			fmt.Sprintf("GRANT pg_create_subscription TO %s; GRANT CREATE ON DATABASE %s TO %[1]s", user, identifier(p.database)), "",
		},
		{!p.replication, role, fmt.Sprintf("role %q may not replicate", p.user), "ALTER ROLE " + user + " REPLICATION", "GRANT rds_replication TO " + user},
		{!p.monitors, role, fmt.Sprintf("role %q does not see how old other sessions' transactions are", p.user), "GRANT pg_monitor TO " + user, ""},
	}
}

// limits are the causes that end a copy before it is complete. The other server's subscription reads
// the tables in a session of its own, with what is set for the role and the database: no connection
// string changes that.
func (p *post) limits() (all []cause) {
	for _, name := range p.timeouts {
		all = append(all, cause{
			true, name, fmt.Sprintf("%s is set for role %q in database %q, and would end the copying of a large table", name, p.user, p.database),
			fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s = 0", identifier(p.user), identifier(p.database), name), "",
		})
	}
	return all
}

// grants are what gives roles on another server the rights that they have here, as members of
// roles with rights in the shards: without them programs could not use the shards there.
func (p *post) grants(target *post, roles []string) (grants, members []string) {
	for _, m := range p.members {
		there := slices.ContainsFunc(target.members, func(t []string) bool { return slices.Equal(t, m) })
		if there || !slices.Contains(roles, m[0]) || !slices.Contains(target.roles, m[0]) {
			continue
		}
		create := ""
		if !slices.Contains(target.roles, m[1]) {
			create = "CREATE ROLE " + identifier(m[1]) + " LOGIN; "
		}
		grants = append(grants, create+"GRANT "+identifier(m[0])+" TO "+identifier(m[1]))
		members = append(members, m[1])
	}
	return grants, members
}

// between are the obstacles between two servers. The target has them.
func (p *post) between(target *post, bytes int64, roles, extensions []string) []Obstacle {
	without := func(needed, there []string) []string {
		return slices.DeleteFunc(slices.Clone(needed), func(name string) bool { return slices.Contains(there, name) })
	}
	missingRoles, missingExtensions := without(roles, target.roles), without(extensions, target.extensions)
	grants, members := p.grants(target, roles)
	needed := bytes + bytes/4
	return obstaclesOf(target.server, []cause{
		{
			p.Version/10000 > target.Version/10000, "version", fmt.Sprintf("it is PostgreSQL %d, older than the %d of %s", target.Version/10000, p.Version/10000, p.server),
			"upgrade it first", "",
		},
		{
			p.locale != target.locale, "locale", fmt.Sprintf("its encoding and locale are %s, and those of %s %s", target.locale, p.server, p.locale),
			"a database made as " + p.server + "'s was", "",
		},
		{len(missingRoles) > 0, phrase.Few(missingRoles), "roles that own or use tables are missing: " + phrase.Few(missingRoles), "CREATE ROLE, there too", ""},
		{len(grants) > 0, phrase.Few(members), "roles that use the shards may not use them there: " + phrase.Few(members), strings.Join(grants, "; ") + ", there too", ""},
		{len(missingExtensions) > 0, phrase.Few(missingExtensions), "extensions are missing: " + phrase.Few(missingExtensions), "CREATE EXTENSION, there too", ""},
		{
			target.disk >= 0 && target.disk < needed, "disk", fmt.Sprintf("the copy needs %d MB, and %d MB are free", needed>>20, target.disk>>20),
			"make room there", "",
		},
	})
}
