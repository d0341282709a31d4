package move

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestPlanEstimates: a plan measures both servers, and says how long the copy takes, how much WAL the source keeps
// meanwhile, and how long the pause is under the load that there is.
func TestPlanEstimates(t *testing.T) {
	a, b := pair(t, 2)
	a.must(t, "CREATE TABLE insta1.users (id bigint PRIMARY KEY, name text); INSERT INTO insta1.users SELECT n, repeat('x', 100) FROM generate_series(1, 50000) AS n; ANALYZE insta1.users")
	plan := func(shards ...int64) *Plan {
		t.Helper()
		p, err := NewPlan(t.Context(), a.Server, b.Server, shards, false, nil)
		if err == nil {
			err = p.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan(1)
	least, most := p.CopyTime()
	if p.Measured.CopyTable != "insta1.users" || p.Measured.CopyRate < 1e5 || least <= 0 || most < SlowerWrites*least {
		t.Errorf("%s to %s, %+v", least, most, p.Measured)
	}
	if p.Pause < 20*time.Millisecond || p.Pause > time.Second || p.PauseMost < p.Pause+lockTime || p.Measured.Slower < 1 || p.Measured.Objects < 1 || p.Measured.Trip <= 0 {
		t.Errorf("pause of %s to %s, %+v", p.Pause, p.PauseMost, p.Measured)
	}
	if p := plan(0); p.Measured.CopyRate != 0 || p.WALKept() != 0 {
		t.Errorf("of a shard without rows: %+v", p.Measured)
	}
}

// TestPlanWALKept: WAL that the source may drop before the copy is complete is something to look at.
func TestPlanWALKept(t *testing.T) {
	p := Plan{Shards: []ShardPlan{{Bytes: 100e6, Tables: 5}}, WALRate: 2e6, Measured: Measured{CopyRate: 10e6, WALLimit: -1}}
	least, most := p.CopyTime()
	if least != 10*time.Second || most != 41*time.Second || math.Abs(float64(p.WALKept()-82e6)) > 1 {
		t.Errorf("%s to %s, %d", least, most, p.WALKept())
	}
	p.Source = "a"
	p.noteWALLimit()
	p.Measured.WALLimit = 83e6
	p.noteWALLimit()
	if len(p.Notes) > 0 {
		t.Errorf("%v", p.Notes)
	}
	p.Measured.WALLimit = 64 << 20
	p.noteWALLimit()
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0].String(), "may need 78 MB of WAL, and max_slot_wal_keep_size = 64 MB drops what is more") {
		t.Errorf("%v", p.Notes)
	}
}
