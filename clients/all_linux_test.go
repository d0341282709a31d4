//go:build amd64 || arm64

// Package clients_test has the tests of clients in several languages at once.
package clients_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

// TestStorm: processes in all languages take ids of one page while it gets other agents, and while they are stopped and replaced.
// make full has two of each language, which take more.
func TestStorm(t *testing.T) {
	languages := clienttest.Languages(t)
	a := clienttest.Serve(t, clienttest.Brief)
	each, pace, few := 1, clienttest.Pace{Batch: 500, Singles: 4, Pause: 20 * time.Millisecond}, int64(100_000)
	if testserver.Long() {
		each, pace.Pause, few = 2, 5*time.Millisecond, 1_000_000
	}
	fleet := clienttest.StartFleet(t, a.Path, each*len(languages), firn.Default(), pace, languages)
	fleet.Begun()
	a.Stop()
	time.Sleep(100 * time.Millisecond) // nobody has ids
	a.Start()
	fleet.Pause(3, func() { time.Sleep(500 * time.Millisecond) })
	fleet.Pause(3, func() { // these sleep until the old page has ended
		a.Kill()
		a.Start()
		fleet.Replace(3)
		time.Sleep(clienttest.Outage + time.Second)
	})
	fleet.Begun()
	ids := fleet.End()
	t.Logf("ids by language: %v, by worker: %v", ids, fleet.Workers)
	if len(fleet.Workers) < 2 {
		t.Error("no process changed to the page of another worker")
	}
	if n := fleet.Total(); n < few {
		t.Errorf("%d ids are few", n)
	}
}
