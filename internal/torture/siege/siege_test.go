//go:build linux

package siege

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each store and the processes that use it are besieged for a while, by chance. The
// command in the directory above does the same for longer.
func TestSiege(t *testing.T) {
	seed := uint64(time.Now().UnixNano()) % 1_000_000_000
	stores, _ := Stores()
	for i, name := range stores {
		seed := seed + uint64(i) // they are not all harmed in the same way
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Run(t.Context(), t, Options{Store: name, For: 30 * time.Second, Workers: 6, Seed: seed})
			t.Logf("go run ./internal/torture -stores %s -workers 6 -seed %d: %d ids, %d numbers, %d repeats; %v, well again after %v",
				name, seed, o.IDs, o.Numbers, o.Repeats, o.Harms, o.Recovery)
			for _, p := range o.Problems {
				t.Error(p)
			}
			if o.IDs < 10_000 || o.Numbers < 1000 || len(o.Harms) < 3 {
				t.Errorf("only %d ids and %d numbers were issued, under %v", o.IDs, o.Numbers, o.Harms)
			}
		})
	}
}

// What is done to whom depends on the seed alone, and every harm comes before one comes
// again.
func TestDeal(t *testing.T) {
	play := func(seed uint64) (all []string) {
		s := &siege{Options: Options{Store: "sqlite", Seed: seed}, random: newRandom(seed), slots: make([]slot, 8)}
		s.store = &victim{harms: append(serverHarms(nil, nil), processHarms...)}
		for len(all) < 100 {
			store := 0
			for _, h := range s.deal() {
				all = append(all, fmt.Sprint(h.name, h.draw(s)))
				if h.store {
					store++
				}
			}
			if store > 1 {
				t.Errorf("%d harms are done to the store at once", store)
			}
		}
		return all
	}
	a, again, b := play(1), play(1), play(2)
	if strings.Join(a, "\n") != strings.Join(again, "\n") {
		t.Error("one seed, two choices")
	}
	if strings.Join(a, "\n") == strings.Join(b, "\n") {
		t.Error("two seeds, one choice")
	}
	first := map[string]bool{}
	n := len(serverHarms(nil, nil)) + len(processHarms)
	for _, text := range a[:n] {
		name, _, _ := strings.Cut(text, "{")
		first[name] = true
	}
	if len(first) != n {
		t.Errorf("of %d harms, %d came in the first %d", n, len(first), n)
	}
}
