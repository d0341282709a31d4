package open_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn/store/open"
)

// Check judges a URL, not what is there: no file is looked for or made.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for url, ok := range map[string]bool{
		"sqlite:/a/ids.db":    true,
		"sqlite:///no/ids.db": true,
		"memory:":             false, // each process would have its own
		"":                    false,
		"sqlite:":             false,
		"sqlite://ids.db":     false,
		"memory:x":            false,
		"oracle://db/x":       false,
		"mysql:///x?socket=":  false, // as of a variable that is not set
		"postgres:///x?host=": false,
	} {
		if err := open.Check(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// cancelled is a ctx that has ended.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
