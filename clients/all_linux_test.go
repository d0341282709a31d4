//go:build amd64 || arm64

// Package clients_test has the tests of clients in several languages at once.
package clients_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

// TestStorm: processes in all languages take ids of one page while it gets other agents, and while they are stopped and replaced.
func TestStorm(t *testing.T) {
	languages := clienttest.Languages(t)
	a := clienttest.Serve(t, clienttest.Brief)
	fleet := clienttest.StartFleet(t, a.Path, 2*len(languages), firn.Default(), clienttest.Pace{Batch: 500, Singles: 4, Pause: 5 * time.Millisecond}, languages)
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
	if n := fleet.Total(); n < 1_000_000 {
		t.Errorf("%d ids are few", n)
	}
}
