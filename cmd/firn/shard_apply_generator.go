package main

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file is about a file of firn shard apply that calls a generator which a shard does not have. So it is where
// functions for each table were taken over, and there is no next_id.

var missingGenerator = regexp.MustCompile(`\b((?:[A-Za-z0-9_]+_)?next_id)s?\(`)

// lacksGenerator returns the name of a generator that a statement calls and the shard does not have, or "".
func lacksGenerator(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42883" {
		return ""
	}
	found := missingGenerator.FindStringSubmatch(pg.Message)
	if found == nil {
		return ""
	}
	return found[1]
}

// generatorHint says which generators a shard has, and how those get one that lack it.
func (a *applied) generatorHint(ctx context.Context, f *ui.Failure, last migrate.Result, name string) *ui.Failure {
	var lacking []int64
	for _, r := range a.results {
		if lacksGenerator(r.Err) == name {
			lacking = append(lacking, r.Shard)
		}
	}
	slices.Sort(lacking)
	if there := a.generatorsOf(ctx, last); len(there) > 0 {
		f = f.Hint("shard %d has %s: call that in the file", last.Shard, strings.Join(there, ", "))
	}
	return f.Hint(`or make %[1]s() there too, which gives ids above all that the shard gave: firn shard exec --write "SELECT firn.create_shard(shard, schema, '%[1]s'), firn.grant_shard(shard, '%[2]s') FROM firn.shard WHERE schema = current_schema()" --shards %[3]s. Then run the same command again`,
		name, setup.DefaultRole, phrase.Numbers(lacking))
}

// generatorsOf are the calls that make ids in a shard; none where its server does not say so.
func (a *applied) generatorsOf(ctx context.Context, r migrate.Result) (calls []string) {
	i := slices.IndexFunc(a.servers, func(s topology.Server) bool { return s.Name == r.Server })
	if i < 0 {
		return nil
	}
	// What fails here has no hint, and the error of the file is said all the same.
	_ = a.servers[i].Ask(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT name || '()' FROM firn.generator WHERE shard = $1 ORDER BY name", r.Shard)
		if err == nil {
			calls, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return calls
}
