package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/move"
)

// This file is about moves that somebody began, and that nobody continues or ends.

// A move is forgotten in which nothing happens for longer than a mover is away between two tries to reach its servers.
// Of a move that has arrived, the old copy is wanted for some time: it is the way back.
const (
	idleAge    = 2 * time.Minute
	arrivedAge = 24 * time.Hour
)

// isForgotten reports whether nobody continues or ends a move.
func isForgotten(f move.Move) bool {
	age := time.Since(f.Began)
	switch f.Phase {
	case move.Begun, move.Filling, move.Ready:
		return f.Idle && age > idleAge
	case move.Arrived:
		return f.Idle && age > arrivedAge
	}
	return false
}

// forgottenText is the finding of a move that is forgotten.
func forgottenText(f move.Move) string {
	which := fmt.Sprintf("the move of shard %s from %s to %s", phrase.Numbers(f.Shards), f.Source, f.Target)
	if f.Phase == move.Arrived {
		return which + " has arrived and was not finished: the old copies still follow" + keptText(f)
	}
	return which + fmt.Sprintf(" is not finished (%s), and no mover is at work on it", f.Stage()) + keptText(f)
}

// keptText says since when a move is under way, and how much WAL the servers keep for it.
func keptText(f move.Move) string {
	parts := []string{"it began " + time.Since(f.Began).Round(time.Second).String() + " ago"}
	for _, server := range slices.Sorted(maps.Keys(f.WAL)) {
		parts = append(parts, fmt.Sprintf("server %s keeps %s of WAL for it", server, phrase.Bytes(f.WAL[server])))
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
