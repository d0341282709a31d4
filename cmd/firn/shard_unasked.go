package main

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file is about servers of the cluster that neither --server nor firn.yaml names for a command.

// unaskedFailure is the error of what nobody can say without servers that were not asked.
func unaskedFailure(servers []string, format string, args ...any) *ui.Failure {
	return ui.Failed("%s: %s", fmt.Sprintf(format, args...), check.UnaskedText(servers)).
		Hint("%s", check.UnaskedDo(servers)).
		Hint("if it is permanently lost: %s", lostPage)
}

// unasked are the servers of the cluster that are not among those that were asked.
func (o *shardsMove) unasked(servers []topology.Server) []string {
	return slices.DeleteFunc(slices.Clone(o.members), func(name string) bool {
		return slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == name })
	})
}
