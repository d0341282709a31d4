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
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/balance"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
)

// grow has one more server bear its part, while all go on sharing: "firn shards
// add-server c=..." and "firn shards rebalance".
func grow(ctx context.Context, out io.Writer, urls map[string]string, users map[string]firn.ID) error {
	var servers []shard.Server
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		config, err := pgx.ParseConfig(urls[name])
		if err != nil {
			return err
		}
		servers = append(servers, shard.Server{Name: name, Config: config})
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
	fmt.Fprintln(out, "\nServer c is added: firn shards add-server c=...; and gets its part, while all go on sharing: firn shards rebalance")
	p := &Photos{cluster}
	busy, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan sharing)
	for _, id := range users {
		go func() { done <- p.share(busy, id) }()
	}
	moved, err := rebalance(ctx, servers)
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
func add(ctx context.Context, servers []shard.Server, name string) error {
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
	i := slices.IndexFunc(servers, func(s shard.Server) bool { return s.Name == name })
	return addRole(ctx, servers[i])
}

// rebalance moves shards until servers have as many bytes, and returns how many it moved.
func rebalance(ctx context.Context, servers []shard.Server) (int, error) {
	var names []string
	var shards []balance.Shard
	for _, l := range check.Loads(ctx, servers) {
		if l.Err != nil {
			return 0, l.Err
		}
		names = append(names, l.Server)
		for _, s := range l.Shards {
			shards = append(shards, balance.Shard{Number: s.Shard, Server: l.Server, Bytes: s.Bytes, Load: float64(s.Bytes), Fixed: !s.Open})
		}
	}
	moves, err := balance.Even(names, shards)
	if err != nil {
		return 0, err
	}
	to := make(map[string][]int64)
	for _, m := range moves {
		to[m.To] = append(to[m.To], m.Number)
	}
	for name, numbers := range to {
		legs, err := move.Legs(ctx, servers, numbers, name)
		if err != nil {
			return 0, err
		}
		for _, l := range legs {
			m := move.New(l.Source, l.Target, nil)
			_, err := m.Move(ctx, l.Shards)
			if err == nil {
				_, err = m.Finish(ctx, l.Shards)
			}
			m.Close()
			if err != nil {
				return 0, err
			}
		}
	}
	return len(moves), nil
}
