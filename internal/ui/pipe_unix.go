//go:build !windows

package ui

import (
	"errors"
	"syscall"
)

// isClosedPipe reports whether err comes from writing to a pipe that nobody
// reads any more.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
