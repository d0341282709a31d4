package check

import (
	"fmt"
	"strings"
)

// This file is about servers of the cluster that a command was not told of: they may serve what the others do not.

// UnaskedText says that servers were not asked.
func UnaskedText(servers []string) string {
	if len(servers) == 1 {
		return "server " + servers[0] + " was not asked"
	}
	return "servers " + strings.Join(servers, ", ") + " were not asked"
}

// UnaskedDo says how to name servers that were not asked.
func UnaskedDo(servers []string) string {
	flags, address := make([]string, len(servers)), "its address"
	for i, name := range servers {
		flags[i] = "--server " + name + "=postgres://USER@HOST/DATABASE"
	}
	if len(servers) > 1 {
		address = "their addresses"
	}
	return fmt.Sprintf("the same command, also with: %s; or put %s into firn.yaml, and leave out --server", strings.Join(flags, " "), address)
}
