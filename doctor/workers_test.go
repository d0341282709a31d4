package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// Doctor and firn worker ls say the same of each worker: of one whose grant has just ended, so that its
// horizon is a little ahead; of one whose horizon is far ahead; and of one whose holder has not written
// for longer than its time to live, on a store that keeps its writes and on one that can lose them.
func TestWorkersAsListed(t *testing.T) {
	for name, lossy := range map[string]string{"durable": "", "lossy": "as the test has it"} {
		t.Run(name, func(t *testing.T) {
			s := memory.New()
			info, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 8})
			if err != nil {
				t.Fatal(err)
			}
			if lossy != "" {
				rec, err := s.Get(t.Context(), term.KeyPool("web"))
				if err != nil {
					t.Fatal(err)
				}
				p, err := term.ReadPool(rec)
				if err != nil {
					t.Fatal(err)
				}
				p.Lossy = lossy
				if _, err := s.Put(t.Context(), rec.Key, p.Encode(), store.Condition{Version: rec.Version}); err != nil {
					t.Fatal(err)
				}
			}
			now := time.Now()
			for n, r := range []term.Record{
				{Horizon: info.Layout.Tick(now.Add(-time.Minute))},
				{Horizon: info.Layout.Tick(now.Add(3 * time.Second))},
				{Horizon: info.Layout.Tick(now.Add(time.Hour))},
				{Horizon: info.Layout.Tick(now.Add(3 * time.Second)), Owner: "alive", TTL: 3_600_000},
				{Horizon: info.Layout.Tick(now.Add(-time.Minute)), Owner: "quiet", TTL: 1},
				{Horizon: info.Layout.Tick(now.Add(time.Hour)), Owner: "dead", TTL: 1},
			} {
				r.V, r.Term, r.Name = 1, 1, "box:1"
				if _, err := s.Put(t.Context(), term.KeyWorker("web", int64(n)), r.Encode(), store.Condition{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Millisecond) // quiet and dead are silent for longer than they may
			workers, err := pool.Workers(t.Context(), s, "web")
			if err != nil {
				t.Fatal(err)
			}
			count := map[pool.WorkerState]int{}
			for _, w := range workers {
				count[w.State]++
			}
			if want := map[string]int{"durable": 1, "lossy": 3}[name]; count[pool.WorkerHeld] != want {
				t.Fatalf("%+v", workers)
			}
			found, _ := examined(t, s, func() time.Time { return now })
			held, unusable := count[pool.WorkerHeld], count[pool.WorkerUnusable]
			wantFinding(t, found, "pool web, workers", OK, fmt.Sprintf("0 to 7: %d held, %d unusable, %d free", held, unusable, 8-held-unusable))
		})
	}
}

// TestAllUnusable: no process can start while the workers of killed ones are ahead of the clock. That is bad, unlike a
// pool whose ids start later, and more workers help at once.
func TestAllUnusable(t *testing.T) {
	s := memory.New()
	info, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(2) {
		r := term.Record{V: 1, Term: 1, Name: "box:1", Horizon: info.Layout.Tick(time.Now().Add(time.Hour))}
		if _, err := s.Put(t.Context(), term.KeyWorker("web", n), r.Encode(), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := examined(t, s, time.Now)
	wantFinding(t, found, "pool web, workers", Bad, "0 to 1: 0 held, 2 unusable, 0 free; no process can start, and the first worker can be leased in ")
	if do := found["pool web, workers"].Do; !strings.Contains(do, "firn pool set web --workers 0-3") {
		t.Errorf("to do: %s", do)
	}
}
