package move

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// An Obstacle is one reason not to begin a move.
type Obstacle struct {
	Server string // which has it
	Shard  int64  // -1: the server's, whatever the shard
	Object string // what it is about: a setting, a role, tables
	Reason string
	Fix    string // what to do about it, on a server of one's own; may be empty
	Hosted string // the same on RDS, where that differs; may be empty
}

func (o Obstacle) String() string {
	where := "server " + o.Server
	if o.Shard >= 0 {
		where = fmt.Sprintf("shard %d on %s", o.Shard, o.Server)
	}
	return where + ": " + o.Reason
}

// Do says what to do about the obstacle, on servers of one's own and on RDS.
func (o Obstacle) Do() string {
	if o.Hosted == "" {
		return o.Fix
	}
	return "own server: " + o.Fix + "; RDS: " + o.Hosted
}

// A RefusedError has all obstacles to a move.
type RefusedError struct {
	Shards    []int64
	From, To  string // servers, with their versions where these are known; empty: of several moves
	Obstacles []Obstacle
}

// Headline is the error without the obstacles.
func (e *RefusedError) Headline() string {
	count := "1 obstacle"
	if len(e.Obstacles) != 1 {
		count = fmt.Sprintf("%d obstacles", len(e.Obstacles))
	}
	if e.To == "" {
		return "the moves cannot begin: " + count
	}
	return fmt.Sprintf("shard %s cannot move from %s to %s: %s", phrase.Numbers(e.Shards), e.From, e.To, count)
}

func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Obstacles))
	for i, o := range e.Obstacles {
		lines[i] = "\n  " + o.String()
		if do := o.Do(); do != "" {
			lines[i] += " (" + do + ")"
		}
	}
	return e.Headline() + strings.Join(lines, "")
}

// Retryable is false: somebody has to remove the obstacles; see firn.Retryable.
func (*RefusedError) Retryable() bool { return false }

// versionOf is a server with its version, as PostgreSQL writes it: a (PostgreSQL 15.8).
func versionOf(name string, v *topology.View) string {
	return fmt.Sprintf("%s (PostgreSQL %d.%d)", name, v.Version/10000, v.Version%10000)
}
