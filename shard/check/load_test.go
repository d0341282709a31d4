package check_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// TestLoads: what shards bear is what is in them, and what is written to them. Of a
// server that counts anew nothing is said.
func TestLoads(t *testing.T) {
	a := newServer(t, "a", 1, 2, 3)
	mustExec(t, a, "CREATE TABLE insta1.t (x text); CREATE TABLE insta2.t (x text); SELECT firn.close(2); UPDATE firn.shard SET state = 'moved', moved_to = 'b' WHERE shard = 3")
	away := a.Config().Copy()
	away.Port = 1
	servers := []topology.Server{{Name: "a", Config: a.Config()}, {Name: "b", Config: away}}
	look := func() *check.Load {
		t.Helper()
		loads := check.Loads(t.Context(), servers)
		if loads[0].Err != nil || len(loads[0].Shards) != 2 || !loads[0].Shards[0].Open || loads[0].Shards[1].Open || loads[1].Err == nil {
			t.Fatalf("%+v %+v", loads[0], loads[1])
		}
		return loads[0]
	}
	first := look()
	if len(first.Rates(nil)) != 0 {
		t.Error("one look says what is written a second")
	}
	writer := connect(t, a.Config().ConnString())
	mustExec(t, writer, "INSERT INTO insta1.t SELECT repeat('x', 100) FROM generate_series(1, 5000)")
	writer.Close(t.Context()) // it tells what it has counted
	second := look()
	for end := time.Now().Add(time.Minute); second.Shards[0].Writes == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		second = look()
	}
	passed := second.At.Sub(first.At).Seconds()
	if rates := second.Rates(first); rates[1]*passed < 4999 || rates[1]*passed > 5001 || rates[2] != 0 || len(rates) != 2 {
		t.Errorf("in %.3f s: %v", passed, rates)
	}
	if s := second.Shards; s[0].Bytes < 500_000 || s[0].Bytes-first.Shards[0].Bytes < 500_000 || s[1].Bytes > 100_000 {
		t.Errorf("%+v, at first %+v", s, first.Shards)
	}
	mustExec(t, a, "SELECT pg_stat_reset()")
	third := look()
	for end := time.Now().Add(time.Minute); third.Shards[0].Writes != 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		third = look()
	}
	if rate, ok := third.Rates(second)[1]; ok {
		t.Errorf("after it has begun to count anew: %v", rate)
	}
}
