package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// This file is about the role that the schema firn belongs to. What a move or an application's SQL
// makes on a server belongs to that role, so it has to be the same on all servers.

// An OwnersError says that the schema firn belongs to different roles on the servers.
type OwnersError struct{ Owners map[string]string } // of servers

func (e *OwnersError) Error() string {
	var parts []string
	for _, server := range slices.Sorted(maps.Keys(e.Owners)) {
		parts = append(parts, fmt.Sprintf("%s on server %s", e.Owners[server], server))
	}
	return "shard: the schema firn does not belong to one role: it is " + strings.Join(parts, ", ")
}

// Owners returns the role that owns the schema firn on each server. It leaves out servers that do not answer.
func Owners(ctx context.Context, servers []topology.Server) map[string]string {
	owners := make([]string, len(servers))
	atonce.Each(servers, func(i int, s topology.Server) error {
		return s.Ask(ctx, func(c *pgx.Conn) error {
			return c.QueryRow(ctx, "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'firn'").Scan(&owners[i])
		})
	})
	all := make(map[string]string)
	for i, owner := range owners {
		if owner != "" {
			all[servers[i].Name] = owner
		}
	}
	return all
}

// Odd returns the servers whose owner is not the owner of most servers, and that owner. Where two owners have
// the same number of servers, the owner of the first server counts.
func Odd(owners map[string]string) (odd []string, most string) {
	names := slices.Sorted(maps.Keys(owners))
	count := make(map[string]int)
	for _, name := range names {
		count[owners[name]]++
	}
	for _, name := range names {
		if most == "" || count[owners[name]] > count[most] {
			most = owners[name]
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return owners[name] == most }), most
}

// differentOwners is the error of servers that were not usable because their owners differ, or err.
func differentOwners(sites []*site, err error) error {
	if !errors.As(err, new(*OwnerError)) {
		return err
	}
	owners := make(map[string]string)
	for _, t := range sites {
		if t != nil && t.owner != "" {
			owners[t.server.Name] = t.owner
		}
	}
	if odd, _ := Odd(owners); len(odd) > 0 {
		return &OwnersError{owners}
	}
	return err
}

// A JoinerError says that a server which is to come into a cluster would belong to another role than
// the servers of the cluster, or than the others that come.
type JoinerError struct {
	Server, User string
	Owner        string // that it has to be
	Has          bool   // the schema firn is there already, and is User's
}

func (e *JoinerError) Error() string {
	return fmt.Sprintf("shard: server %s: its address has the role %s, and the shards of the other servers belong to the role %s", e.Server, e.User, e.Owner)
}

// sameOwner refuses servers that are not in the cluster yet, and whose role is not the owner of the
// others. Those that are in it stay as they are.
func sameOwner(sites []*site, members []string) error {
	isMember := func(t *site) bool {
		return slices.Contains(members, t.server.Name) && t.view != nil && t.view.Cluster != ""
	}
	owner := ""
	for _, t := range sites {
		if isMember(t) {
			owner = t.user
			break
		}
	}
	for _, t := range sites {
		if owner == "" {
			owner = t.user
		}
		if t.user != owner && !isMember(t) {
			return &JoinerError{t.server.Name, t.user, owner, t.owner != ""}
		}
	}
	return nil
}
