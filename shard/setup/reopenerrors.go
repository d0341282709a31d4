package setup

import (
	"errors"
	"fmt"
	"strings"
)

// An AwayError says that a server does not answer, which may serve the shards that are to be opened.
type AwayError struct{ Server, Away string }

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
