package main

import (
	"errors"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file says what to do about a server that does not answer. It may be back in a
// minute: nothing is ever hinted that would take for granted that it is lost.

// lostPage is where the docs say what to do about a server that is permanently lost.
const lostPage = `docs/guides/shards-operating.md, "A server that is lost"`

// startHint is the hint of an error that is only that a server does not answer.
func startHint(server string) string {
	return "start server " + server + ", or check its address; to see which servers answer: firn shard status. Then run the same command again. If it is permanently lost: " + lostPage
}

// addressFailure is an error of an address that leads to another database than the server, or to a
// standby, with what to do about it. Other errors are returned as they are.
func addressFailure(err error) error {
	do := check.AddressDo(err)
	if do == "" {
		return err
	}
	return ui.Failed("%w", err).Hint("%s", do)
}

// awayServer is the server of an error that is only that it does not answer, or "".
func awayServer(err error) string {
	var of *topology.ServerError
	if !errors.As(err, &of) || !of.Away() {
		return ""
	}
	return of.Server
}
