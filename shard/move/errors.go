package move

import (
	"fmt"
)

// An OtherMoveError says that a shard is in a move to another server, which began first.
type OtherMoveError struct {
	Shard          int64
	Source, Target string // of that move
}

func (e *OtherMoveError) Error() string {
	return fmt.Sprintf("shard %d is in another move, from %s to %s, which began first", e.Shard, e.Source, e.Target)
}

// An EndedError says that a move which this mover began was ended by somebody else. The mover does
// not begin it again: whoever gave it up was told so.
type EndedError struct{ Shard int64 }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the move of shard %d was ended by another command meanwhile", e.Shard)
}

// A NoWayBackError says that a shard does not go back to the copy that it came from, which
// is not what the shard is any more. The shard serves where it has come to.
type NoWayBackError struct {
	Shard  int64
	Server string // that has the copy
	Err    error
}

func (e *NoWayBackError) Error() string { return e.Err.Error() }

func (e *NoWayBackError) Unwrap() error { return e.Err }
