//go:build linux

package siege

import (
	"testing"
	"time"
)

// Command returns the path of the command firn, built as the programs of this package are: what its wall clock says can be
// changed with a [Clock].
func Command(t testing.TB) string {
	t.Helper()
	return program(t, "firn")
}

// A Clock is the wall clock of the processes that get its variable.
type Clock struct{ skew *skew }

// NewClock makes a clock in a file. It is right until Set.
func NewClock(t testing.TB, path string) *Clock {
	t.Helper()
	return &Clock{newSkew(t, path)}
}

// Variable is what the environment of a process needs, such as "NAME=VALUE".
func (c *Clock) Variable() string { return clockFile + "=" + c.skew.path }

// Set makes the clock wrong by so much, ahead where it is positive.
func (c *Clock) Set(off time.Duration) { c.skew.set(off) }
