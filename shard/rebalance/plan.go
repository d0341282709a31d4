// Package rebalance moves shards so that servers bear an equal load, with few bytes copied,
// or empties a server.
//
//	moved, left, err := rebalance.Resume(ctx, servers, opts) // what another run has begun
//	plan, err := rebalance.NewPlan(ctx, servers, opts)
//	refusals, notes, err := plan.Check(ctx, servers, opts)
//	moved, err = plan.Run(ctx, servers, opts)
//
// A process may be killed at any instant, and begin again: Resume goes on where it was, and
// NewPlan looks at what is there then. What it takes to move shards says package move.
package rebalance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// A By says which load is to be even.
type By string

const (
	Size By = "size" // bytes of tables and indexes
	Rate By = "rate" // rows that are written in a second
)

// Options of a rebalancing. Nil, or any zero field, takes the default, which the comment
// names first.
type Options struct {
	By     By            // Size
	Sample time.Duration // 10 s: for how long rows that are written are counted, by Rate
	Drain  string        // none: the server to empty, instead of making all even

	Parallel int          // 1: how many moves are under way at once, each between two servers
	Keep     bool         // leave the old copies: somebody is to call (*move.Mover).Finish
	Move     move.Options // of each move; its Progress is not called

	// Progress is told how far all moves are. Several goroutines call it.
	Progress func(Progress)
}

func (o *Options) withDefaults() *Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.By == "" {
		c.By = Size
	}
	if c.Sample == 0 {
		c.Sample = 10 * time.Second
	}
	if c.Parallel == 0 {
		c.Parallel = 1
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return &c
}

// A Shard is one that is open on a server.
type Shard struct {
	Number int64
	Server string
	Bytes  int64   // what a move copies
	Load   float64 // what is to be even: bytes, or rows a second; not below 0
	Fixed  bool    // it bears on its server, and is not moved: it is closed, or in a move
}

// A Move takes a shard to another server.
type Move struct {
	Shard
	To string
}

// A Plan says which shards to move.
type Plan struct {
	By      By
	Servers []string // the cluster's
	Shards  []Shard
	Moves   []Move // none: nothing is to be done

	checked  []*move.Plan // by source and target; nil before Check
	parallel int
}

// A FixedError says that a shard keeps a server from being emptied.
type FixedError struct {
	Shard  int64
	Server string
	Move   *move.Move // the move that it is in; nil: it is closed
}

func (e *FixedError) Error() string {
	if e.Move != nil {
		return fmt.Sprintf("shard: shard %d on %s is in a move that is not finished", e.Shard, e.Server)
	}
	return fmt.Sprintf("shard: shard %d on %s is closed, and only an open one moves", e.Shard, e.Server)
}

// NewPlan measures the load of all servers of a cluster, and returns the moves after which the loads are
// nearly equal, or after which the server of Options.Drain is empty. By Rate it takes Options.Sample.
// Errors: *FixedError; *topology.ServerError where a server does not answer.
func NewPlan(ctx context.Context, servers []topology.Server, opts *Options) (*Plan, error) {
	o := opts.withDefaults()
	p := &Plan{By: o.By}
	for _, s := range servers {
		p.Servers = append(p.Servers, s.Name)
	}
	var err error
	if p.Shards, err = measure(ctx, servers, o); err != nil {
		return nil, err
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return nil, err
	}
	for i, s := range p.Shards {
		at := slices.IndexFunc(moves, func(f move.Move) bool { return slices.Contains(f.Shards, s.Number) })
		p.Shards[i].Fixed = s.Fixed || at >= 0
		if s.Server != o.Drain || !p.Shards[i].Fixed {
			continue
		}
		fixed := &FixedError{Shard: s.Number, Server: s.Server}
		if at >= 0 {
			fixed.Move = &moves[at]
		}
		return nil, fixed
	}
	if o.Drain != "" {
		p.Moves, err = drain(p.Servers, p.Shards, o.Drain)
	} else {
		p.Moves, err = even(p.Servers, p.Shards)
	}
	return p, err
}

// Loads returns the load of each server now, and after the moves.
func (p *Plan) Loads() (before, after map[string]float64) {
	return loadsAfter(p.Servers, p.Shards, nil), loadsAfter(p.Servers, p.Shards, p.Moves)
}

// measure returns the shards with what they bear.
func measure(ctx context.Context, servers []topology.Server, o *Options) ([]Shard, error) {
	first, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	var shards []Shard
	for _, l := range first {
		for _, s := range l.Shards {
			// A shard without rows is not nothing: it has files, and may get rows.
			shards = append(shards, Shard{Number: s.Shard, Server: l.Server, Bytes: s.Bytes, Load: float64(s.Bytes + 8192), Fixed: !s.Open})
		}
	}
	if o.By == Size {
		return shards, nil
	}
	select {
	case <-time.After(o.Sample):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	return rated(shards, first, second), nil
}

// loads are what all servers bear.
func loads(ctx context.Context, servers []topology.Server) ([]*check.Load, error) {
	all := check.Loads(ctx, servers)
	for _, l := range all {
		if l.Err != nil {
			return nil, l.Err
		}
	}
	return all, nil
}

// rated are shards whose load is what was written to them between two looks, in rows a
// second: nothing where that cannot be told.
func rated(shards []Shard, first, second []*check.Load) []Shard {
	rates := make(map[string]map[int64]float64)
	for i, l := range second {
		rates[l.Server] = l.Rates(first[i])
	}
	for i, s := range shards {
		shards[i].Load = rates[s.Server][s.Number]
	}
	return shards
}
