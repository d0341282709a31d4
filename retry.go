package firn

import (
	"context"
	"errors"
)

// Retryable reports whether the same call may do better a moment later, though nobody
// changes anything: a store or a server was away, a grant is used up for now, every worker
// is taken. It is false where somebody has to do something first: the name is mistyped, a
// right is missing, the layout has ended, the store has forgotten what it acknowledged. It
// is false, too, after Close, and where the caller's context ended.
//
// It knows the errors of all packages of firn, wrapped or not. An error that says nothing of
// itself, as those of drivers, is taken for one that passes.
func Retryable(err error) bool {
	if err == nil || errors.Is(err, ErrClosed) {
		return false
	}
	var says interface{ Retryable() bool }
	if errors.As(err, &says) {
		return says.Retryable()
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
