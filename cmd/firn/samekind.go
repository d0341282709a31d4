package main

import (
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/ui"
)

// This file is about series whose kind in firn.yaml is not that of the counter that the store
// has by their name. An id in the place of a number is wrong, however unique; and a counter of
// the other kind would hide the one that is there.

func zoneKey(zone string) string {
	if zone == "" {
		return ""
	}
	return ", zone: " + zone
}

// kindHints says what to write where the store has a counter of another kind.
func kindHints(f *ui.Failure, e *open.KindError) *ui.Failure {
	switch {
	case !e.Listed:
		return f.Hint("to serve this store: list the series of the server in firn.yaml, %s with kind: %s or not at all", e.Name, e.Have.Kind)
	case e.Have.Kind == config.Serial:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: serial, pattern: %q%s }", e.Name, e.Have.Pattern, zoneKey(e.Have.Zone))
	case e.Have.Kind == config.Ticket:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: ticket, stores: [URL, URL] }, with the stores that it was created with", e.Name)
	default:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: %s }", e.Name, e.Have.Kind)
	}
	return f.Hint("to have a %s beside it, give the series in firn.yaml another name", e.Want)
}
