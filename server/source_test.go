package server_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
)

// Series share a source where they were made with one, however equal two sources are; and each
// source is asked once.
func TestSources(t *testing.T) {
	asked := 0
	source := func() *server.Source {
		return &server.Source{State: func() server.State {
			asked++
			return server.State{Kind: "flake", Lease: &server.Lease{Pool: "main", Workers: []int64{1}, Term: 1}}
		}}
	}
	one, two := source(), source()
	series := func(name string, of *server.Source) *server.Series {
		return server.Numbers(name, nil, &server.SeriesOptions{Source: of})
	}
	s := newServer(t, &server.Options{Others: func(name string) (*server.Series, error) { return series(name, two), nil }},
		series("a", one), series("b", two), series("c", one), series("d", nil), series("e", nil))
	want := [][]string{{"a", "c"}, {"b", server.OtherNames}, {"d"}, {"e"}}
	got := s.Sources()
	if len(got) != len(want) || asked != 2 {
		t.Fatalf("%d sources, of which %d were asked; want %d and 2", len(got), asked, len(want))
	}
	for i, names := range want {
		for j, name := range names {
			if len(got[i].Series) != len(names) || got[i].Series[j].Name() != name {
				t.Errorf("source %d: series %d of %d is not %s", i, j, len(got[i].Series), name)
			}
		}
	}
}

// In JSON durations are seconds, the time that is left counts from when the state was so, and
// what does not apply is left out.
func TestStateJSON(t *testing.T) {
	at := time.Date(2026, 11, 23, 22, 5, 13, 0, time.FixedZone("+7", 7*3600))
	lossy := false
	for want, st := range map[string]server.State{
		`{"at":"2026-11-23T15:05:13Z","store_away":false,"exhausted":false,"waits":0}`: {At: at},
		`{"at":"2026-11-23T15:05:13Z","kind":"flake","durable":false,"store_away":true,"exhausted":false,"trouble_since":"2026-11-23T15:04:13Z",` +
			`"starts_at":"2026-11-23T15:05:14Z","ends_at":"2026-11-23T15:05:18Z","waits":3,` +
			`"lease":{"pool":"web","workers":[7],"term":2,"leased_at":"2026-11-23T15:04:13Z","ahead_seconds":-0.5,"borrowed_seconds":0},` +
			`"left_seconds":5,"budget_seconds":10,"used_up_at":"12000-01-01T00:00:00Z","error":"gone"}`: {
			At: at, Kind: "flake", Durable: &lossy, StoreAway: true, TroubleSince: at.Add(-time.Minute), StartsAt: at.Add(time.Second), EndsAt: at.Add(5 * time.Second),
			Budget: 10 * time.Second, Waits: 3, UsedUpAt: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), Err: errors.New("gone"),
			Lease: &server.Lease{Pool: "web", Workers: []int64{7}, Term: 2, LeasedAt: at.Add(-time.Minute), Ahead: -500 * time.Millisecond},
		},
		`{"at":"2026-11-23T15:05:13Z","kind":"sequence","store_away":false,"exhausted":true,"ends_at":"2026-11-23T15:05:12Z","waits":0,` +
			`"counter":{"next":"9007199254740993","last":"9007199254740993","increment":2,"reserved":1,"wasted":0},"left_seconds":0}`: {
			At: at, Kind: "sequence", Exhausted: true, EndsAt: at.Add(-time.Second),
			Counter: &server.Counter{Next: 1<<53 + 1, Last: 1<<53 + 1, Increment: 2, Reserved: 1},
		},
	} {
		got, err := json.Marshal(st)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant\n%s", got, err, want)
		}
	}
}
