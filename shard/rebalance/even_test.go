package rebalance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func spread(loads map[string]float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range loads {
		low, high = min(low, l), max(high, l)
	}
	return high - low
}

func TestEvenTable(t *testing.T) {
	of := func(server string, loads ...float64) (s []Shard) {
		for i, l := range loads {
			s = append(s, Shard{Number: int64(i) + int64(server[0])*1000, Server: server, Bytes: int64(l), Load: l})
		}
		return s
	}
	for _, tt := range []struct {
		name    string
		servers []string
		shards  []Shard
		moves   int
		spread  float64
	}{
		{"nothing there", []string{"a", "b"}, nil, 0, 0},
		{"even", []string{"a", "b"}, append(of("a", 5, 5), of("b", 10)...), 0, 0},
		{"within the tolerance", []string{"a", "b"}, append(of("a", 50, 52), of("b", 50, 50)...), 0, 2},
		{"two to four", []string{"a", "b", "c", "d"}, append(of("a", 10, 10, 10, 10), of("b", 10, 10, 10, 10)...), 4, 0},
		{"one is too large", []string{"a", "b"}, of("a", 100, 10, 10), 2, 80},
		{"one alone stays", []string{"a", "b"}, of("a", 100), 0, 100},
		{"no load", []string{"a", "b"}, of("a", 0, 0), 0, 0},
		{"places are not changed", []string{"a", "b", "c"}, slices.Concat(of("a", 50, 50, 51), of("b", 50, 50, 50), of("c", 50, 50)), 0, 51},
		{"one server", []string{"a"}, of("a", 3, 4), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			moves, err := even(tt.servers, tt.shards)
			if err != nil {
				t.Fatal(err)
			}
			if len(moves) != tt.moves {
				t.Errorf("%d moves, want %d: %v", len(moves), tt.moves, moves)
			}
			if got := spread(loadsAfter(tt.servers, tt.shards, moves)); got != tt.spread {
				t.Errorf("a spread of %v, want %v", got, tt.spread)
			}
		})
	}
}

// random draws servers and what is on them.
func random(rng *rand.Rand, servers, shards int) ([]string, []Shard) {
	names := []string{"a", "b", "c", "d", "e"}[:servers]
	crowded := 1 + rng.IntN(servers)
	var s []Shard
	for i := range shards {
		bytes := int64(1 + rng.ExpFloat64()*100)
		load := float64(bytes)
		if rng.IntN(2) == 0 {
			load = math.Floor(rng.ExpFloat64() * 50)
		}
		s = append(s, Shard{Number: int64(i), Server: names[rng.IntN(crowded)], Bytes: bytes, Load: load})
	}
	return names, s
}

func TestEven(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		servers, shards := random(rng, 1+rng.IntN(5), rng.IntN(60))
		for i := range shards {
			shards[i].Fixed = rng.IntN(20) == 0
		}
		moves, err := even(servers, shards)
		if err != nil {
			t.Fatal(err)
		}
		once := map[int64]bool{}
		for _, m := range moves {
			if once[m.Number] || m.To == m.Server || m.Fixed {
				t.Fatalf("seed %d: %v again, or nowhere", seed, m)
			}
			once[m.Number] = true
		}
		after := loadsAfter(servers, shards, moves)
		if was, is := spread(loadsAfter(servers, shards, nil)), spread(after); is > was+1e-9 {
			t.Fatalf("seed %d: the spread grows from %v to %v", seed, was, is)
		}
		most, total := servers[0], 0.0
		for _, s := range servers {
			total += after[s]
			if after[s] > after[most] {
				most = s
			}
		}
		// What is left is explained by the tolerance, or by shards that are too heavy.
		left, mean := spread(after), total/float64(len(servers))
		if left <= 2*Tolerance*mean+1e-9 {
			continue
		}
		for _, s := range shards {
			if s.Server == most && !s.Fixed && !once[s.Number] && s.Load > 0 && s.Load < left-Tolerance*mean/2-1e-9 {
				t.Fatalf("seed %d: a spread of %v is left, and shard %d of %v could be moved", seed, left, s.Number, s.Load)
			}
		}
	}
}

// TestFewBytes compares with the fewest bytes that bring a pair of servers as near to
// each other: what is moved is at most half more, all in all.
func TestFewBytes(t *testing.T) {
	var ours, fewest int64
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		servers, shards := random(rng, 2, 1+rng.IntN(11))
		moves, err := even(servers, shards)
		if err != nil {
			t.Fatal(err)
		}
		reached := spread(loadsAfter(servers, shards, moves))
		for _, m := range moves {
			ours += m.Bytes
		}
		least := int64(math.MaxInt64)
		for set := range 1 << len(shards) {
			var some []Move
			var bytes int64
			for i, s := range shards {
				if set>>i&1 == 1 {
					some = append(some, Move{s, map[string]string{"a": "b", "b": "a"}[s.Server]})
					bytes += s.Bytes
				}
			}
			if bytes < least && spread(loadsAfter(servers, shards, some)) <= reached+1e-9 {
				least = bytes
			}
		}
		fewest += least
	}
	t.Logf("%d bytes, where %d are the fewest", ours, fewest)
	if ours*2 > fewest*3 {
		t.Errorf("%d bytes are moved, where %d would do", ours, fewest)
	}
}

// TestNearlyAsMuch: of two shards that are written to nearly as much, the smaller one moves.
func TestNearlyAsMuch(t *testing.T) {
	for _, small := range []float64{98, 100, 102} {
		shards := []Shard{{Number: 1, Server: "a", Bytes: 1000, Load: 100}, {Number: 2, Server: "a", Bytes: 10, Load: small}}
		moves, err := even([]string{"a", "b"}, shards)
		if err != nil || len(moves) != 1 || moves[0].Number != 2 {
			t.Errorf("%v rows: %v, %v", small, moves, err)
		}
	}
}

// TestDrainIdle: what nobody writes to is spread by its bytes.
func TestDrainIdle(t *testing.T) {
	var shards []Shard
	for i := range int64(6) {
		shards = append(shards, Shard{Number: i, Server: "a", Bytes: 100})
	}
	servers := []string{"a", "b", "c", "d"}
	moves, err := drain(servers, shards, "a")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, m := range moves {
		got[m.To]++
	}
	for _, s := range servers[1:] {
		if got[s] != 2 {
			t.Errorf("%v", got)
		}
	}
}

func TestDrain(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		servers, shards := random(rng, 2+rng.IntN(4), rng.IntN(60))
		moves, err := drain(servers, shards, "a")
		if err != nil {
			t.Fatal(err)
		}
		on := 0
		for _, s := range shards {
			if s.Server == "a" {
				on++
			}
		}
		if len(moves) != on {
			t.Fatalf("seed %d: %d moves for %d shards", seed, len(moves), on)
		}
		for _, m := range moves {
			if m.Server != "a" || m.To == "a" {
				t.Fatalf("seed %d: %v", seed, m)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	lost := []Shard{{Number: 1, Server: "x", Load: 1}}
	if _, err := even([]string{"a"}, lost); err == nil {
		t.Error("a shard on no server is taken")
	}
	if _, err := even(nil, nil); err == nil {
		t.Error("no server is taken")
	}
	if _, err := drain([]string{"a"}, nil, "a"); err == nil {
		t.Error("the only server is drained")
	}
	if _, err := drain([]string{"a", "b"}, []Shard{{Number: 1, Server: "a", Fixed: true}}, "a"); err == nil {
		t.Error("a server with a shard that stays is drained")
	}
	if _, err := drain([]string{"a", "b"}, nil, "c"); err == nil {
		t.Error("a server that is not there is drained")
	}
}
