package main

import (
	"slices"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// This file says in which phase of a move a gap was.

// The phases besides those of a mover.
const (
	before move.Phase = "before"
	after  move.Phase = "after"
)

// phases is the order in which they are printed.
var phases = []move.Phase{before, move.Preparing, move.Copying, move.Verifying, move.Cutting, move.Counting, after}

// A Said is a line of a mover: that a phase has begun, or what it did in the end.
type Said struct {
	At    time.Time
	Phase move.Phase   `json:",omitempty"` // empty: the end
	Moved []move.Moved `json:",omitempty"`
}

// phaseOf is the phase that most of a gap was in, of those that began one after the other.
func phaseOf(begun []Said, g gap) move.Phase {
	in := make(map[move.Phase]time.Duration)
	for i, s := range begun {
		from, to := s.At, g.until
		if from.Before(g.begun) {
			from = g.begun
		}
		if i+1 < len(begun) && begun[i+1].At.Before(to) {
			to = begun[i+1].At
		}
		in[s.Phase] += max(0, to.Sub(from))
	}
	return slices.MaxFunc(phases, func(a, b move.Phase) int { return int(in[a] - in[b]) })
}
