package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/daemon"
)

// A server that starts with a grant file while its store is away says that the store has not
// answered, and nothing in its place.
func TestServeSaysThatTheStoreIsAway(t *testing.T) {
	durable := true
	r := daemon.Running{First: server.State{Kind: config.Flake, Store: "redis://cache", Durable: &durable}}
	text := strings.Join((&serveCommand{}).facts(r), "\n")
	if strings.Contains(text, ": )") || !strings.Contains(text, "store redis://cache (durable when it was last heard): it has not answered since this server started") {
		t.Error(text)
	}
}
