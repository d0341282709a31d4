package move

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// A Move is a batch of shards that is under way, or that has arrived and was not finished, as far as the
// servers that answer show it.
type Move struct {
	Batch, Source, Target string
	Shards                []int64
	Moved                 []int64 // those that the target serves
	Kept                  []int64 // those that the source serves, if it answers
	Waiting               []int64 // those that the source let go, and the target has not opened yet: no server serves them
	Back                  []int64 // those whose last mover was a revert, finished or not
	Surplus               []int64 // those whose copy has rows that the server that serves lacks, by the last comparison
	Parted                []int64 // those that can neither move on nor go back: the other copy is not what the shard is any more
	Began                 time.Time
	Phase                 Stage

	Rows, RowsTotal int64 // rows on the target, and rows in all, as the servers estimate
	Unapplied       int64 // bytes of WAL that the other server has not applied yet; -1: not known
	Problem         string

	WAL  map[string]int64 // bytes of WAL that the replication slots of the move keep, by server; only where they keep any
	Idle bool             // no mover is at work on it; false where the role may not see the sessions of others

	Paused bool // somebody has paused it: the copy does not follow, and no cutover begins

	Forgot string // of HalfLeft: the server that knows nothing of it
	Err    error  // of Unknown: the [*topology.ServerError] of the server that did not say

	Copy    string // the server that was promoted, restored or copied: reopen it before anything else
	Standby string // of Unknown: the server whose address leads to a standby
	Unasked string // of Unknown: the server of the move that is not among those that were asked

	Old   []int64         // those of which the target has an old copy, which firn shard reopen has left, and which is in the way of the move
	Twice []check.Finding // of shards that more than one server serves: nothing ends the move before

	Lost []check.Opening // shards that no server serves, and that the move does not open; empty unless all servers answer
}

// Nowhere returns the shards that no server serves, as far as servers answer.
func (f Move) Nowhere() []int64 {
	return slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return slices.Contains(f.Moved, n) || slices.Contains(f.Kept, n) })
}

// Fresh reports whether only one server knows the move because it has just begun.
func (f Move) Fresh() bool { return f.Phase == HalfLeft && time.Since(f.Began) < halfAge }

// Openings returns the commands that open shards which no server serves. The server that a shard was let
// go to opens it, whatever you want to do with the move afterwards.
func (f Move) Openings() (commands []string) {
	back := slices.DeleteFunc(slices.Clone(f.Waiting), func(n int64) bool { return !slices.Contains(f.Back, n) })
	if len(back) > 0 {
		commands = append(commands, opening(true, back, f.Target))
	}
	if len(back) < len(f.Waiting) {
		forth := slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return slices.Contains(f.Back, n) })
		commands = append(commands, opening(false, forth, f.Target))
	}
	if len(f.Lost) > 0 { // the first, because nothing else can end the move
		commands = commands[:0]
		for _, o := range f.Lost {
			commands = append(commands, o.Text())
		}
	}
	return commands
}

// opening is the command that opens shards of a move which were let go to its source, or to its
// target.
func opening(back bool, shards []int64, target string) string {
	if back {
		return revert(shards)
	}
	return moveTo(shards, target)
}

// A Stage says how far a move is.
type Stage string

const (
	Begun    Stage = "begun"     // the target has no copy yet
	Filling  Stage = "copying"   // it makes one
	Ready    Stage = "following" // it has one, and keeps it up to date
	Between  Stage = "cutover"   // a shard was let go, and not taken yet
	Arrived  Stage = "arrived"   // all are on the target; their old copies follow
	HalfLeft Stage = "ending"    // one of the servers knows nothing of it any more
	Unknown  Stage = "unknown"   // one of the servers does not answer, or refuses to
)

// Moves returns the moves that the servers know, the oldest first. The error is that of a server that
// did not answer; the moves are then those that the others know.
func Moves(ctx context.Context, servers []topology.Server) ([]Move, error) {
	said := make([]map[string]*account, len(servers))
	seen, errs := make([]*topology.View, len(servers)), make([]error, len(servers))
	err := atonce.Each(servers, func(i int, s topology.Server) error {
		said[i], seen[i], errs[i] = askOfMoves(ctx, s)
		return errs[i]
	})
	views := make(map[string]*topology.View)
	for i, v := range seen {
		if stray := servers[i].Outside(v, errs[i], seen); stray != nil {
			said[i], v, errs[i], err = nil, nil, stray, cmp.Or(err, stray)
		}
		if v != nil {
			views[servers[i].Name] = v
		}
	}
	words := make(map[string]map[string]*account) // by batch and server
	for i, of := range said {
		for batch, w := range of {
			if words[batch] == nil {
				words[batch] = make(map[string]*account)
			}
			words[batch][servers[i].Name] = w
		}
	}
	var all []Move
	for batch, of := range words {
		f := moveOf(batch, of)
		f.unasked(servers)
		for i, s := range servers {
			if s.Name != f.Source && s.Name != f.Target {
				continue
			}
			if errs[i] != nil {
				f.silent(s.Name, errs[i])
			}
			if v, other := views[s.Name], views[either(s.Name == f.Source, f.Target, f.Source)]; of[s.Name] == nil && v != nil && other != nil && v.Cluster != other.Cluster {
				f.silent(s.Name, &topology.ServerError{Server: s.Name, Err: &topology.StrayError{Database: v.Database, Why: "is in another cluster"}})
			}
			if v := views[s.Name]; v != nil && v.Standby {
				f.Phase, f.Forgot, f.Problem, f.Standby = Unknown, "", "the address of "+s.Name+" leads to a standby", s.Name
			}
		}
		f.lookAt(views, len(views) == len(servers))
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Move) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Batch, b.Batch)) })
	return all, err
}

// lookAt notes what servers say of the shards, which the accounts of the move do not say. Answered says that all
// servers have answered. Of a move that a server refuses to show, it notes only shards that two servers serve.
func (f *Move) lookAt(views map[string]*topology.View, answered bool) {
	f.Twice = check.Twice(views, func(n int64) bool { return slices.Contains(f.Shards, n) })
	if f.Refused() {
		return
	}
	both := map[string]*topology.View{f.Source: views[f.Source], f.Target: views[f.Target]}
	for _, n := range f.Shards {
		if both[f.Source] != nil && both[f.Target] != nil {
			f.Copy = cmp.Or(f.Copy, check.CopyOf(both, n))
		}
		if o, lost := check.OpeningOf(views, n); lost && answered {
			f.Lost = append(f.Lost, o)
		}
		if hasOldCopy(views[f.Target], n) {
			f.Old = append(f.Old, n)
		}
	}
}

// hasOldCopy says whether a server has a copy of a shard that firn shard reopen has left.
func hasOldCopy(v *topology.View, n int64) bool {
	return v != nil && slices.ContainsFunc(v.Shards, func(row topology.Row) bool { return row.Shard == n && row.Told && !row.Dropped })
}

// unasked notes that one server of the move is not among those that were asked, so that nobody knows what it knows.
func (f *Move) unasked(servers []topology.Server) {
	for _, name := range []string{f.Source, f.Target} {
		if !slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == name }) {
			f.Phase, f.Forgot, f.Unasked, f.Problem = Unknown, "", name, name+" was not asked"
		}
	}
}

// silent notes that a server has not said what it knows. Where one refuses and the other one is
// away, that one comes first.
func (f *Move) silent(server string, err error) {
	if f.Err != nil && !f.Refused() {
		return
	}
	f.Phase, f.Forgot, f.Err, f.Problem = Unknown, "", err, server+" does not answer"
	var stray *topology.StrayError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &stray):
		f.Problem = "server " + server + ": " + stray.Error()
	case errors.As(err, &pg) && strings.HasPrefix(pg.Code, "28"):
		f.Problem = server + " refuses the login: " + pg.Message
	case f.Refused():
		f.Problem = server + " refuses to say: " + reason(err)
	}
}

// Refused reports whether both servers answer, and one of them refuses to say how far the move is.
func (f Move) Refused() bool {
	var of *topology.ServerError
	return errors.As(f.Err, &of) && !of.Away()
}

// reason is what a server says, without its name.
func reason(err error) string {
	var pg *pgconn.PgError
	var of *topology.ServerError
	switch {
	case errors.As(err, &pg):
		return pg.Message
	case errors.As(err, &of):
		return of.Err.Error()
	}
	return err.Error()
}

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
