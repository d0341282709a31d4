package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// This file is about servers that somebody else started and has data on.

// Names of what is made on servers.
const (
	schemas = "moves%d"
	role    = "firn_moves"
)

// parseServers reads a=URL,b=URL; nothing for an empty text.
func parseServers(text string) (map[string]string, error) {
	all := make(map[string]string)
	if text == "" {
		return all, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		name, address, _ := strings.Cut(one, "=")
		u, err := url.Parse(address)
		if (name != "a" && name != "b") || err != nil || u.Host == "" || all[name] != "" {
			return nil, fmt.Errorf("not the addresses of servers a and b, as in a=postgres://USER@HOST/DATABASE,b=postgres://USER@HOST/DATABASE: %q", text)
		}
		all[name] = address
	}
	if len(all) != 2 {
		return nil, errors.New("name both servers: a=URL,b=URL")
	}
	return all, nil
}

// use looks whether the given databases can be used, and says what is made there.
func (w *world) use(ctx context.Context, out io.Writer) error {
	w.urls, w.addresses = w.given, w.between
	for _, name := range []string{"a", "b"} {
		if err := refuse(ctx, w.given[name]); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
	}
	fmt.Fprintf(out, "On both servers it makes the schema firn, %d schemas %s, the role %s, and publications, subscriptions and replication slots firn_*. It removes them at its end.\n",
		2*w.runs, schemaOf(0)+" and on", role)
	if !w.faults || len(w.between) > 0 || !loopback(w.given) {
		return nil
	}
	w.addresses = make(map[string]string)
	for name, address := range w.given {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		port := u.Port()
		if port == "" {
			port = "5432"
		}
		w.links[name] = testserver.NewProxy(w.tb, net.JoinHostPort(u.Hostname(), port))
		w.addresses[name] = through(address, w.links[name])
	}
	return nil
}

// refusals are what speaks against a database, with what to do.
var refusals = []struct{ sql, text string }{
	{"SELECT to_regnamespace('firn') IS NOT NULL", "this database has a schema firn, which may be your cluster: name an empty database (CREATE DATABASE moves)"},
	{"SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname ~ '^moves[0-9]+$')", "this database has schemas moves0 or the like: name an empty database (CREATE DATABASE moves)"},
	{"SELECT to_regrole('" + role + "') IS NOT NULL", "this server has a role " + role + ": DROP ROLE " + role + ", or name another server"},
	{"SELECT current_setting('wal_level') <> 'logical'", "set wal_level = logical, and start the server again"},
	{"SELECT NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)", "name a superuser in the address: these moves are begun by one"},
}

func refuse(ctx context.Context, address string) error {
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for _, r := range refusals {
		var speaks bool
		if err := c.QueryRow(ctx, r.sql).Scan(&speaks); err != nil {
			return err
		}
		if speaks {
			return errors.New(r.text)
		}
	}
	return nil
}

// loopback says whether both servers are on this host, where they reach a proxy of this process.
func loopback(servers map[string]string) bool {
	for _, address := range servers {
		u, err := url.Parse(address)
		if err != nil || !slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, u.Hostname()) {
			return false
		}
	}
	return true
}

// leave removes what was made on servers that somebody else started.
func (w *world) leave(ctx context.Context) error {
	var err error
	for _, sql := range removals {
		for _, name := range []string{"a", "b"} {
			err = errors.Join(err, w.runEach(ctx, name, sql))
		}
	}
	return err
}

// removals give the statements that remove what was made, in their order. Each is one transaction, because
// a server has room for few locks in one.
var removals = []string{
	`SELECT format('ALTER SUBSCRIPTION %I DISABLE', subname) FROM pg_subscription WHERE subname ~ '^firn_(move|back)_' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())`,
	`SELECT format(f, subname) FROM pg_subscription, unnest(ARRAY['ALTER SUBSCRIPTION %I SET (slot_name = NONE)', 'DROP SUBSCRIPTION %I']) WITH ORDINALITY AS o (f, n)
		WHERE subname ~ '^firn_(move|back)_' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY subname, n`,
	`SELECT format('SELECT pg_terminate_backend(%s, 5000)', active_pid) FROM pg_replication_slots WHERE slot_name ~ '^firn_(move|back)_' AND database = current_database() AND active`,
	`SELECT format('SELECT pg_drop_replication_slot(%L)', slot_name) FROM pg_replication_slots WHERE slot_name ~ '^firn_(move|back)_' AND database = current_database()`,
	`SELECT format('DROP PUBLICATION %I', pubname) FROM pg_publication WHERE pubname ~ '^firn_(move|back)_'`,
	`SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname ~ '^moves[0-9]+$' OR nspname = 'firn'`,
	`SELECT 'DROP OWNED BY ` + role + `' WHERE to_regrole('` + role + `') IS NOT NULL`,
	`SELECT 'DROP ROLE ` + role + `' WHERE to_regrole('` + role + `') IS NOT NULL`,
}

// runEach runs the statements that a query gives.
func (w *world) runEach(ctx context.Context, server, sql string) error {
	c, err := w.reached[server].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, one := range all {
		if _, err := c.Exec(ctx, one, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("server %s: %s: %w", server, one, err)
		}
	}
	return nil
}
