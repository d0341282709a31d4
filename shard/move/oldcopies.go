package move

import (
	"context"
	"errors"
	"slices"

	"github.com/firn-id/firn/shard/topology"
)

// This file drops copies that are in no move any more: most are of shards that firn shard reopen has opened on
// another server. Such a copy may have rows that the server lacks which serves the shard, so the two are compared first.

// An OldCopy is a copy of a shard that another server serves, and that no move needs.
type OldCopy struct {
	Shard         int64
	Server, Owner string // that has the copy, and that serves the shard
	schema        string
	term          int64 // of the copy's row
	twice         bool  // more than one server serves the shard
}

// OldCopies returns the copies that no move needs, of the shards that asked selects. All servers
// have to answer.
func OldCopies(ctx context.Context, servers []topology.Server, asked func(shard int64) bool) ([]OldCopy, error) {
	left, _, err := ofNoMove(ctx, servers)
	var all []OldCopy
	for _, l := range left {
		if (l.Kind == Old || l.Kind == Copy) && asked(l.Shard) {
			all = append(all, l.copy)
		}
	}
	return all, err
}

// oldCopyOf is the copy that was found, with the server that serves the shard.
func oldCopyOf(servers []topology.Server, found []residue, l Leftover) OldCopy {
	c := OldCopy{Shard: l.Shard, Server: l.Server, schema: l.Name}
	for i, r := range found {
		for _, row := range r.shards {
			switch name := servers[i].Name; {
			case row.Shard != l.Shard:
			case name == l.Server:
				c.term = row.Term
			case row.Serves() && c.Owner != "":
				c.twice = true
			case row.Serves():
				c.Owner = name
			}
		}
	}
	return c
}

// Check compares the copy with the shard, and returns a [*SurplusError] where the copy has rows that the server
// lacks which serves the shard, unless dropRowsOf names the server of the copy.
func (c OldCopy) Check(ctx context.Context, servers []topology.Server, dropRowsOf string) error {
	switch {
	case c.twice:
		return &StuckError{c.Shard, "more than one server serves it, so nothing is dropped", seeDoctor}
	case dropRowsOf == c.Server:
		return nil
	}
	found, err := Compare(ctx, serverOf(servers, c.Owner), serverOf(servers, c.Server), c.schema)
	if err != nil || !found.Lacks() {
		return err
	}
	text := found.Text()
	if found.Example != "" {
		text += ", such as " + found.Example
	}
	return &SurplusError{c.Shard, c.Server, c.Owner, text, true}
}

// Drop checks the copy as Check does, and drops it.
func (c OldCopy) Drop(ctx context.Context, servers []topology.Server, dropRowsOf string) error {
	if err := c.Check(ctx, servers, dropRowsOf); err != nil {
		return err
	}
	e := newEnd(serverOf(servers, c.Server))
	defer e.close()
	if err := e.connect(ctx); err != nil {
		return err
	}
	l := Leftover{Server: c.Server, Kind: Copy, Name: c.schema, Shard: c.Shard}
	done, err := l.locked(ctx, e.conn, remedies[Copy], c.term)
	if err == nil && !done {
		err = errors.New("somebody has worked on the shard since the copy was compared: run the same command again")
	}
	return e.fault(err)
}

func serverOf(servers []topology.Server, name string) topology.Server {
	return servers[slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == name })]
}
