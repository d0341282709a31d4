package postgres

import (
	"strings"
	"testing"
)

// An address at which nobody listens is said on one line, and once: the driver tries it with and
// without TLS, and writes a line for each.
func TestCauseOnOneLine(t *testing.T) {
	t.Parallel()
	_, err := New(connect(t, "postgres://u@127.0.0.1:1/app")).Get(t.Context(), "k")
	if err == nil || strings.ContainsAny(err.Error(), "\n\t") || strings.Count(err.Error(), "connection refused") != 1 {
		t.Errorf("%q", err)
	}
}
