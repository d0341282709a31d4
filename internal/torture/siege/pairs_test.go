//go:build linux

package siege

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// harmed is a siege that has harms and does none.
func harmed(seed uint64, harms []harm) *siege {
	s := &siege{Options: Options{Seed: seed}, random: newRandom(seed), slots: make([]slot, 8), deck: newDeck(harms)}
	s.out = newOutcome(s.Options)
	for i := range s.slots {
		s.slots[i].proc = &proc{}
	}
	return s
}

// plays does the steps of a round.
func (s *siege) plays() (harms []harm) {
	harms = s.deck.deal(s.random)
	for i := range harms {
		harms[i].do = func(*siege, draw) func() { return func() {} }
	}
	for _, st := range s.steps(harms) {
		st.do()
	}
	return harms
}

func ofAServer() []harm {
	return slices.Concat(serverHarms(nil, nil), processHarms, []harm{putBack(nil)})
}

// Every pair of harms that can meet does, in as many rounds as a store has in a run of all
// stores for an hour. After that all meet again.
func TestEveryPairMeets(t *testing.T) {
	for _, tt := range []struct {
		name  string
		harms []harm
		pairs int
	}{
		// Of 11 harms to processes each meets each, and itself, and all 10 to the store. Of
		// those, 4 to the server, 2 to connections and 3 others meet where they differ.
		{"a server", ofAServer(), 11*12/2 + 11*10 + 4*5 + 2*3 + 3},
		{"a server that was given", slices.Concat(networkHarms(nil), processHarms), 11*12/2 + 11*5 + 2*3 + 3},
		{"a cluster", slices.Concat(clusterHarms(nil), processHarms), 11*12/2 + 11*3},
		{"a store that fails over", append(slices.Clone(lossyProcessHarms), failover(nil, nil)), 3*4/2 + 3},
	} {
		for seed := range uint64(20) {
			s := harmed(seed, tt.harms)
			if p := s.deck.pairs(); p.Met != 0 || p.Of != tt.pairs || len(p.NotMet) != tt.pairs {
				t.Fatalf("%s: before a round %d of %d pairs met, not 0 of %d", tt.name, p.Met, p.Of, tt.pairs)
			}
			rounds := 0
			for ; len(s.deck.pairs().NotMet) > 0 && rounds < 1000; rounds++ {
				s.plays()
			}
			if most := 10 + tt.pairs/4; rounds > most {
				t.Errorf("%s, seed %d: %d rounds for %d pairs, and not at most %d", tt.name, seed, rounds, tt.pairs, most)
			}
			for range rounds + 20 {
				s.plays()
			}
			if again := s.deck.least(); s.deck.met[again[0]] < 2 {
				t.Errorf("%s, seed %d: after twice as many rounds some met once: %v", tt.name, seed, again)
			}
		}
	}
}

// What is done to whom depends on the seed alone, harms to one part of the store do not
// overlap, and all of a round do. Alone every harm comes before one comes again.
func TestDeal(t *testing.T) {
	play := func(seed uint64) (all, alone []string) {
		s := harmed(seed, ofAServer())
		for len(alone) < len(s.deck.harms) {
			before := s.deck.pairs().Met
			harms := s.plays()
			all = append(all, fmt.Sprint(namesOf(harms), s.random.Uint64()))
			if len(harms) == 1 {
				alone = append(alone, harms[0].name)
				if met := s.deck.pairs().Met; met != before {
					t.Errorf("%s is alone, and %d pairs more met", harms[0].name, met-before)
				}
			}
			for i := range harms {
				for j := range i {
					if !overlap(&harms[i], &harms[j]) || s.deck.met[pairOf(harms[i].name, harms[j].name)] == 0 {
						t.Errorf("in %q %s and %s do not meet", namesOf(harms), harms[i].name, harms[j].name)
					}
				}
			}
		}
		return all, alone
	}
	a, alone := play(1)
	again, _ := play(1)
	b, _ := play(2)
	if strings.Join(a, "\n") != strings.Join(again, "\n") {
		t.Error("one seed, two choices")
	}
	if strings.Join(a, "\n") == strings.Join(b, "\n") {
		t.Error("two seeds, one choice")
	}
	slices.Sort(alone)
	if n := len(slices.Compact(alone)); n != len(ofAServer()) {
		t.Errorf("of %d harms, %d came in the first that were alone", len(ofAServer()), n)
	}
}

// Two of one name strike two processes, and each lasts until the last has struck.
func TestDraws(t *testing.T) {
	s := harmed(7, processHarms)
	twice := []harm{processHarms[0], processHarms[3], processHarms[0], processHarms[4]}
	for range 1000 {
		draws := s.drawAll(twice)
		if draws[0].slot == draws[2].slot {
			t.Fatalf("one process is killed twice: %+v", draws)
		}
		var last time.Duration
		for _, d := range draws {
			last = max(last, d.after)
		}
		for _, d := range draws {
			if d.after+d.length <= last {
				t.Fatalf("%+v ends before the last begins: %+v", d, draws)
			}
		}
	}
}

// For each part there is a reason why its harms do not overlap, and no other reason.
func TestExclusive(t *testing.T) {
	all := slices.Concat(ofAServer(), clusterHarms(nil), []harm{failover(nil, nil), away("store locked", fileLock, short, nil, nil)})
	parts := map[part]bool{}
	for i := range all {
		parts[all[i].part] = true
		if all[i].part != aProcess && exclusive[all[i].part] == "" {
			t.Errorf("there is no reason why two harms to %s do not overlap, such as %q", all[i].part, all[i].name)
		}
	}
	for p := range exclusive {
		if !parts[p] {
			t.Errorf("there is a reason for %s, and no harm to it", p)
		}
	}
}
