package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/rebalance"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// grow has one more server bear its part, while all go on sharing: "firn shard
// add-server c=..." and "firn shard rebalance".
func grow(ctx context.Context, out io.Writer, urls map[string]string, users map[string]firn.ID) error {
	var servers []topology.Server
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		config, err := pgx.ParseConfig(urls[name])
		if err != nil {
			return err
		}
		servers = append(servers, topology.Server{Name: name, Config: config})
	}
	if err := add(ctx, servers, "c"); err != nil {
		return err
	}
	// A program knows of a server before shards come there.
	cluster, closePools, err := connect(ctx, urls)
	defer closePools()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nServer c is added: firn shard add-server c=...; and gets its part, while all go on sharing: firn shard rebalance")
	p := &Photos{cluster}
	busy, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan sharing)
	for _, id := range users {
		go func() { done <- p.share(busy, id) }()
	}
	moved, err := rebalanceAll(ctx, servers)
	stop()
	all := gather(done, len(users))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %d shards moved\n", moved)
	fmt.Fprintf(out, "  %d photos were shared, the slowest within %s; %d were broken off, of %d nobody knows\n", all.photos, all.longest.Round(time.Millisecond), all.again, all.unknown)
	return nil
}

// add makes a server one of the cluster that the others are in.
func add(ctx context.Context, servers []topology.Server, name string) error {
	opened, err := setup.Open(ctx, servers, true)
	if err != nil {
		return err
	}
	defer opened.Close()
	addition, err := opened.Add([]string{name}, nil)
	if err != nil {
		return err
	}
	if err := addition.Run(ctx); err != nil {
		return err
	}
	i := slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == name })
	return addRole(ctx, servers[i])
}

// rebalanceAll moves shards until servers have as many bytes, and returns how many it moved.
func rebalanceAll(ctx context.Context, servers []topology.Server) (int, error) {
	plan, err := rebalance.NewPlan(ctx, servers, nil)
	if err != nil {
		return 0, err
	}
	moved, err := plan.Run(ctx, servers, nil)
	return len(moved), err
}
