package testserver

import (
	"fmt"
	"testing"
	"time"
)

// faketimeKind is what gets between a program and the clock.
var faketimeKind = &kind{
	name: "faketime", packages: []string{"faketime"},
	binaries: []string{"/usr/lib/*/faketime/libfaketime.so.1"},
}

// PostgresBehind is PostgresTarget, with a clock that is behind the machine's by so much: for
// all that the server does with the time of day. How long things take, and when files
// were written, it knows as it is.
func PostgresBehind(tb testing.TB, by time.Duration, settings ...string) *Server {
	tb.Helper()
	require(tb, faketimeKind)
	_, to := asked()
	return startPostgres(tb, to, []string{
		"LD_PRELOAD=" + program(faketimeKind.binaries[0]), fmt.Sprintf("FAKETIME=%+.3f", -by.Seconds()),
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
	}, settings)
}
