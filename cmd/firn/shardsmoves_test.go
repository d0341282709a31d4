//go:build !windows

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// database makes a database of a test's own, which is a server of a cluster.
func database(t *testing.T, server *testserver.Server, name string) (address string) {
	t.Helper()
	own := strings.ToLower(t.Name()) + name
	if err := makeDatabase(t.Context(), server.URL(), own); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(server.URL(), "/postgres?", "/"+own+"?", 1)
}

func onDatabase(t *testing.T, address, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// succeed runs the command, and returns what it prints.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	p := command(t, "none", args...)
	var out strings.Builder
	p.Stdout = &out
	if err := p.Run(); err != nil {
		t.Fatalf("firn %s: %v\n%s", strings.Join(args, " "), err, &p.errs)
	}
	return out.String()
}
