package setup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/shard/check"
)

// An AwayError says that a server does not answer, which may serve the shards that are to be opened.
// Unlisted says that no other server has it in its list of the cluster's servers: it was removed since, perhaps.
type AwayError struct {
	Server, Away string
	Unlisted     bool
}

func (e *AwayError) Error() string {
	return fmt.Sprintf("shard: server %s has not answered: what it serves must not be opened on %s", e.Away, e.Server)
}

// A NothingError says that a server has no copy of a shard.
type NothingError struct {
	Shard           int64
	Server, MovedTo string // that has none, and where it went by what that one says
}

func (e *NothingError) Error() string {
	return fmt.Sprintf("shard %d: %s has no copy of it", e.Shard, e.Server)
}

// An IncompleteError says that a server may lack rows of a shard.
type IncompleteError struct {
	Shard           int64
	More            []int64 // other shards of the plan of which that is true, in order
	Server, MovedTo string  // where it is to be opened, and where it went by what that one says
	Err             error
}

func (e *IncompleteError) Error() string {
	if len(e.More) > 0 {
		return fmt.Sprintf("shard %d and %d more: %s may lack rows of them: of shard %[1]d, %[4]s", e.Shard, len(e.More), e.Server, e.Err)
	}
	return fmt.Sprintf("shard %d: %s may lack rows of it: %s", e.Shard, e.Server, e.Err)
}

func (e *IncompleteError) Unwrap() error { return e.Err }

// A LacksError says that a copy of a shard on another server has rows which the server lacks that is to
// open the shard: that server was put back to an earlier state, or was never sent these rows.
type LacksError struct {
	Shard         int64
	More          []int64 // other shards of the plan of which that is true, in order
	Server, Other string  // where it is to be opened, and where the copy is
	Found         check.Comparison
	Superset      bool // no server that is to open these shards has any row that the copies on Other lack
	Doubtful      bool // Other does not know whether its copies are complete, and opens them by Incomplete only
}

func (e *LacksError) Error() string {
	text := fmt.Sprintf("shard %d: the copy on %s has %s that %s lacks", e.Shard, e.Other, e.Found.Text(), e.Server)
	if e.Found.Example != "" {
		text += ", such as " + e.Found.Example
	}
	text += fmt.Sprintf("; %s has %s that the copy on %s lacks", e.Server, check.Comparison{Second: e.Found.First}.Text(), e.Other)
	if len(e.More) > 0 {
		text += fmt.Sprintf("; %s lacks rows of %d more shards too", e.Server, len(e.More))
	}
	return text
}

// A lackError is one that is alike of several shards.
type lackError interface {
	error
	add(shard int64, other lackError)
}

func (e *IncompleteError) add(n int64, other lackError) {
	if o, ok := other.(*IncompleteError); ok && o.MovedTo == e.MovedTo {
		e.More = append(e.More, n)
	}
}

func (e *LacksError) add(n int64, other lackError) {
	if o, ok := other.(*LacksError); ok && o.Other == e.Other && o.Doubtful == e.Doubtful {
		e.More, e.Superset = append(e.More, n), e.Superset && o.Superset
	}
}

// A RefusesError says that a server answers, and does not say what it serves. It may serve what
// is to be opened elsewhere.
type RefusesError struct {
	Server string
	Err    error
}

func (e *RefusesError) Error() string {
	return fmt.Sprintf("server %s does not say what it serves: %s", e.Server, strings.TrimPrefix(e.Err.Error(), "shard: "))
}

func (e *RefusesError) Unwrap() error { return e.Err }

// ErrOvertaken says that somebody has worked on the shards since they were looked at.
var ErrOvertaken = errors.New("shard: meanwhile somebody else has worked on the shards")
