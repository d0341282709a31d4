//go:build linux

package siege

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	if raceDetector {
		fmt.Println("NOT TESTED: the race detector sees this process only, and not those that these tests are about")
		return
	}
	// Most of these tests wait most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// Programs are linked without what debuggers read, which takes half of the time.
	if err := os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-w")); err != nil {
		panic(err)
	}
	testserver.Main(m, RemovePrograms)
}

// check ends all processes and looks at every id that was issued.
// Others are taken into account.
func (w *world) check(others ...Issuer) *Report {
	w.t.Helper()
	r := w.report(others...)
	for _, text := range r.Problems {
		w.t.Error(text)
	}
	return r
}

// report is check for a test that knows of problems.
func (w *world) report(others ...Issuer) *Report {
	w.t.Helper()
	r := Check(w.layout, append(w.gather(), others...))
	w.t.Log(r)
	return r
}
