package testserver

import "testing"

// promtoolKind is what checks rules and queries of Prometheus. Its package brings the
// server, too, which is not started.
var promtoolKind = &kind{name: "promtool", packages: []string{"prometheus"}, binaries: []string{"promtool"}}

// Promtool returns the path of promtool.
func Promtool(tb testing.TB) string {
	tb.Helper()
	require(tb, promtoolKind)
	return program("promtool")
}
