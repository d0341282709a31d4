package testserver

import "testing"

// chromiumKind is the browser that opens our pages.
var chromiumKind = &kind{name: "chromium", packages: []string{"chromium"}, binaries: []string{"chromium"}}

// Chromium returns the path of Chromium.
func Chromium(tb testing.TB) string {
	tb.Helper()
	require(tb, chromiumKind)
	return program("chromium")
}
