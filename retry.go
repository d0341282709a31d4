package firn

import (
	"context"
	"errors"
)

// Retryable reports whether the call that returned err may succeed a moment later though
// nobody changes anything: a store or a server was away, a grant is used up for now, every
// worker is taken. It returns false if somebody has to do something first: the name is
// mistyped, a right is missing, the layout has ended, the store has forgotten what it
// acknowledged. It also returns false after Close, and if the caller's context ended.
//
// Retryable knows the errors of all packages of firn, wrapped or not. It returns true for any
// other error, such as that of a driver.
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
