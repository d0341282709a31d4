package move

import (
	"os"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// child has what the test binary does instead of tests, so that it can be killed, by
// what FIRN_MOVE_CHILD says.
var child = map[string]func() int{}

func TestMain(m *testing.M) {
	if run := child[os.Getenv("FIRN_MOVE_CHILD")]; run != nil {
		os.Exit(run())
	}
	testserver.Main(m)
}
