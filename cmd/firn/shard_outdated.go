package main

import (
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
)

// updateDo is what to do about functions of another version of firn.
const updateDo = "to bring them up to date, with this version of firn on all servers: firn shard init"

// outdated is the finding about servers whose functions are of another version of firn, as after an upgrade: a move
// refuses them.
func outdated(seen []*check.Server) []check.Finding {
	var names []string
	for _, s := range seen {
		if s.Err != nil || s.Standby {
			continue
		}
		if code, err := install.Code(s.Layout); err == nil && s.Code != code {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	of, them := "server ", "it"
	switch {
	case len(names) == 0:
		return nil
	case len(names) > 1:
		of, them = "servers ", "them"
	}
	return []check.Finding{{Level: check.Warn, Text: "the functions of " + of + strings.Join(names, ", ") + " are of another version of firn, so shards cannot move from or to " + them, Do: updateDo}}
}
