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

// An EndedError says that another command ended the move that this mover began. The mover does not
// begin it again.
type EndedError struct{ Shard int64 }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the move of shard %d was ended by another command meanwhile", e.Shard)
}

// A NoWayBackError says that a shard cannot go back, because its old copy is not what the shard is any
// more. The target serves the shard.
type NoWayBackError struct {
	Shard  int64
	Server string // that has the copy
	Err    error
}

func (e *NoWayBackError) Error() string { return e.Err.Error() }

func (e *NoWayBackError) Unwrap() error { return e.Err }
