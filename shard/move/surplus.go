package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// This file keeps a copy that has rows which the server that serves the shard lacks: no command drops it
// unless somebody names it.

// A SurplusError says that a copy of a shard has rows which the server that serves the shard lacks, as the last
// comparison found. The copy was not dropped, and does not serve.
type SurplusError struct {
	Shard  int64
	Server string // that has the copy
	Owner  string // that serves the shard
	Found  string // by the comparison
	Old    bool   // the copy is the one that the shard moved from
}

// Do says what to do about the copy.
func (e *SurplusError) Do() string {
	some, drop := []int64{e.Shard}, abort
	if e.Old {
		drop = finish
	}
	if e.unknown() {
		return fmt.Sprintf("compare these tables by hand, and write to %s what it lacks, from the schema on %s; then, or if its rows are not needed: %s --drop-rows-of %[2]s", e.Owner, e.Server, drop(some))
	}
	return fmt.Sprintf("write to %s what it lacks, from the schema on %s; if these rows are not needed: %s --drop-rows-of %[2]s", e.Owner, e.Server, drop(some))
}

func (e *SurplusError) Error() string {
	has := "has"
	if e.unknown() {
		has = "may have"
	}
	return fmt.Sprintf("shard %d: the copy on %s %s rows that %s lacks, which serves: %s", e.Shard, e.Server, has, e.Owner, e.Found)
}

// unknown reports whether the comparison found no rows, but tables that it could not compare: a migration was applied
// to one of the copies since.
func (e *SurplusError) unknown() bool { return strings.HasPrefix(e.Found, "tables ") }

// checkSurplus refuses shards whose copy, which is about to be dropped, has rows that no other server has.
func (m *Mover) checkSurplus(some []pairOf) error {
	for _, p := range some {
		owner, other, c := m.source, m.target, p.target
		if !p.source.serves() {
			owner, other, c = m.target, m.source, p.source
		}
		if c.surplus != "" && m.options.DropRowsOf != other.Name {
			return &SurplusError{p.shard, other.Name, owner.Name, c.surplus, other == m.source}
		}
	}
	return nil
}

// noteSurplus keeps on a server what was found of its copy. It does so also where the mover is told to stop.
func (m *Mover) noteSurplus(ctx context.Context, e *end, n int64, found *string, counted bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	return e.call(ctx, "SELECT firn.note_surplus($1, $2, $3, $4)", n, m.batch, found, counted)
}

// compared returns the error of a comparison. Where the copy has rows of its own, that is kept, and is the
// error.
func (m *Mover) compared(ctx context.Context, from, to *end, n int64, err error) error {
	var different *DifferentError
	if !errors.As(err, &different) || !different.Surplus {
		return err
	}
	found := different.Error()
	if err := m.noteSurplus(ctx, to, n, &found, false); err != nil {
		return err
	}
	return &SurplusError{n, to.Name, from.Name, found, to == m.source}
}
