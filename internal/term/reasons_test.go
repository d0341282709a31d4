package term

import (
	"strings"
	"testing"
	"time"
)

// What the command and the server say of an error names no option of a Go program, and is how
// the error itself begins.
func TestReasons(t *testing.T) {
	for _, err := range []interface {
		error
		Reason() string
	}{
		&NotYetError{Pool: "web", StartsAt: time.Unix(1e9, 0)},
		&NotYetError{Pool: "web", StartsAt: time.Unix(1e9, 0), Why: "the store can lose writes"},
		&LayoutError{"web", "firn", "js53"},
		&MissingPoolError{Pool: "web"},
		&MissingPoolError{Pool: "web", Pools: []string{"shop"}},
		&MissingPoolError{Pool: "web", Creating: true},
		&WorkerError{Pool: "web", Worker: 7, Last: 3},
		&FullError{Pool: "web", Workers: 4},
		&ClockError{Host: time.Unix(1e9+60, 0), Store: time.Unix(1e9, 0)},
		&AwayError{Wait: time.Second},
		&FreshError{Pool: "web", Workers: 4},
	} {
		if reason := err.Reason(); strings.Contains(strings.ToLower(reason), "option") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q is said of %q", reason, err)
		}
	}
}
