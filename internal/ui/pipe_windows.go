package ui

import (
	"errors"
	"syscall"
)

// What Windows calls a pipe that is being closed.
const errorNoData = syscall.Errno(232)

// isClosedPipe reports whether err comes from writing to a pipe that nobody
// reads any more.
func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, errorNoData)
}
