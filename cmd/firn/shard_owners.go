package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file says what to do about servers whose schema firn belongs to different roles: programs are
// denied what a move or firn shard apply makes on one of them.

// ownersHints adds to an error of such servers which addresses work, and how the roles become one.
func ownersHints(f *ui.Failure, owners map[string]string) *ui.Failure {
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		flags = append(flags, "--server "+ownerAddress(name, owners[name]))
	}
	return f.Hint("in the same command give each address the role of that server: %s", strings.Join(flags, " ")).
		Hint("to see how all servers come to belong to one role: firn shard doctor")
}

// joinerHint says with which address a server comes into a cluster.
func joinerHint(f *ui.Failure, e *setup.JoinerError) *ui.Failure {
	do := fmt.Sprintf("in the same command give this address instead: %s", ownerAddress(e.Server, e.Owner))
	if e.Has { // it was in the cluster once: a server that has shards is refused before
		do = fmt.Sprintf("on server %s, as the role %s: DROP SCHEMA firn CASCADE. Then, %s", e.Server, e.User, do)
	}
	return f.Hint("%s", do)
}

func ownerAddress(server, role string) string {
	return server + "=postgres://" + url.PathEscape(role) + "@HOST/DATABASE"
}

// noMember is the error of a server that is not in the cluster, with the command that takes it in. That command takes
// the role that owns the schema firn, which may not be the role that moves shards.
func noMember(ctx context.Context, servers []topology.Server, name string, err error) *ui.Failure {
	do := "firn shard add-server " + name
	_, owner := setup.Odd(setup.Owners(ctx, servers))
	if owner != "" && slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Config.User != owner }) {
		do += " " + asRole(owner)
	}
	return ui.Failed("%w", err).Hint("to make it one of the cluster: %s", do)
}

// otherOwners warns of servers whose schema firn belongs to another role than that of most servers.
func otherOwners(ctx context.Context, servers []topology.Server) (found []check.Finding) {
	owners := setup.Owners(ctx, servers)
	odd, most := setup.Odd(owners)
	for _, name := range odd {
		found = append(found, check.Finding{
			Level: check.Warn, Server: name,
			Text: fmt.Sprintf("the schema firn belongs to the role %s here, and to %s on the other servers: programs may be denied what moves and firn shard apply make here", owners[name], most),
			Do: fmt.Sprintf("to move its shards away, until it has none: firn shard rebalance --drain %s. Then: firn shard remove-server %[1]s. Then on server %[1]s, as the role %[2]s: DROP SCHEMA firn CASCADE. Then: firn shard add-server %[3]s",
				name, owners[name], ownerAddress(name, most)),
		})
	}
	return found
}
