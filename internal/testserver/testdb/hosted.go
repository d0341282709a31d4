package testdb

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// Hosted makes a role and a database on a server, as hosted servers give them: the role is no superuser,
// owns its database, may replicate, and is a member of pg_create_subscription and pg_monitor. It returns
// the role's URL of the database. The server is the test's own: what the role may do on it is changed.
func Hosted(tb testing.TB, server *testserver.Server) (url string) {
	tb.Helper()
	ctx := context.Background() // a program that is no test has no context of one
	c, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	var hba string
	if err := c.QueryRow(ctx, "SELECT current_setting('hba_file')").Scan(&hba); err != nil {
		tb.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE ROLE hosted LOGIN CREATEROLE CREATEDB REPLICATION PASSWORD 'sesame' IN ROLE pg_create_subscription, pg_monitor",
		"CREATE DATABASE hosted OWNER hosted",
		// A role that is no superuser may only subscribe where a password is asked for.
		`CREATE TABLE hba AS SELECT line FROM regexp_split_to_table(pg_read_file(current_setting('hba_file')), '\n') AS line`,
		"COPY (SELECT 'host all hosted all scram-sha-256' UNION ALL SELECT line FROM hba) TO '" + hba + "'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := c.Exec(ctx, sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
	return strings.Replace(URL(server.URL(), "hosted"), "//t@", "//hosted:sesame@", 1)
}
