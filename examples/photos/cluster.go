package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file does what an operator does once: "firn shard init --count 8 --yes ..." and
// "firn shard apply migrations".

//go:embed migrations/*.sql
var migrations embed.FS

// makeShards makes a cluster on the servers, and the tables of the service on each
// shard.
func makeShards(ctx context.Context, out io.Writer, urls map[string]string, count int64) error {
	var servers []topology.Server
	for _, name := range []string{"a", "b"} {
		config, err := pgx.ParseConfig(urls[name])
		if err != nil {
			return err
		}
		servers = append(servers, topology.Server{Name: name, Config: config})
	}
	if err := initialize(ctx, servers, count); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d shards on servers a and b: firn shard init --count %d ...\n", count, count)
	for _, s := range servers {
		if err := addRole(ctx, s); err != nil {
			return err
		}
	}
	files, err := apply(ctx, servers)
	fmt.Fprintf(out, "%d files applied to each: firn shard apply migrations\n", files)
	return err
}

func initialize(ctx context.Context, servers []topology.Server, count int64) error {
	opened, err := setup.Open(ctx, servers, true)
	if err != nil {
		return err
	}
	defer opened.Close()
	plan, err := opened.Init(setup.Wish{Count: count, Layout: layout})
	if err != nil {
		return err
	}
	return plan.Run(ctx, &atomic.Int64{})
}

// addRole makes the role that the program connects as: it may use the shards, and
// neither own nor move them.
func addRole(ctx context.Context, s topology.Server) error {
	c, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	// A role is all databases' of a server, and may be there.
	_, err = c.Exec(ctx, `DO $$ BEGIN CREATE ROLE photos LOGIN PASSWORD 'photos'; EXCEPTION WHEN duplicate_object THEN END $$;
		GRANT firn_app TO photos`, pgx.QueryExecModeSimpleProtocol)
	return err
}

// apply applies the SQL files, and returns how many there are.
func apply(ctx context.Context, servers []topology.Server) (int, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	files, err := migrate.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	state, err := migrate.Look(ctx, servers)
	if err != nil {
		return 0, err
	}
	plan, err := migrate.NewPlan(state, files, nil, false)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, r := range plan.Run(ctx, servers, nil) {
		if r.Err != nil {
			failed = append(failed, fmt.Errorf("shard %d: %w", r.Shard, r.Err))
		}
	}
	return len(files), errors.Join(failed...)
}

// connect opens the cluster as the program does: a pool for each server, by its name.
func connect(ctx context.Context, urls map[string]string) (c *shard.Cluster, closePools func(), err error) {
	pools := make(map[string]*pgxpool.Pool)
	closePools = func() {
		for _, p := range pools {
			p.Close()
		}
	}
	for name, url := range urls {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			return nil, closePools, err
		}
		config.ConnConfig.User, config.ConnConfig.Password = "photos", "photos"
		if pools[name], err = pgxpool.NewWithConfig(ctx, config); err != nil {
			delete(pools, name)
			return nil, closePools, err
		}
	}
	c, err = shard.Open(ctx, pools, nil)
	return c, closePools, err
}
