//go:build linux

package siege

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// Each store and the processes that use it are besieged by chance, until enough harm was
// done to each. Each run chooses one of the stores anew; make full takes all. The command in the
// directory above does the same for longer.
func TestSiege(t *testing.T) {
	const faults = 12 // half a minute, or some minutes on a machine that is busy
	seed := uint64(time.Now().UnixNano()) % 1_000_000_000
	stores, _ := Stores()
	chosen := rand.New(rand.NewPCG(seed, 0)).Perm(len(stores))
	if !testserver.Long() {
		chosen = chosen[:1]
		t.Logf("seed %d chooses %s", seed, stores[chosen[0]])
	}
	for i, name := range stores {
		o := Options{Store: name, For: 10 * time.Minute, Faults: faults, Workers: 6, Seed: seed + uint64(i)} // not all are harmed in the same way
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(chosen, i) {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			out := Run(t.Context(), t, o)
			t.Logf("%s: %d ids, %d numbers, %d repeats in %s; %v, %d of %d pairs met, well again after %v",
				o.Command(name), out.IDs, out.Numbers, out.Repeats, out.Lasted.Round(time.Second), out.Harms, out.Pairs.Met, out.Pairs.Of, out.Recovery)
			for _, p := range out.Problems {
				t.Error(p)
			}
			if out.faults() < faults || out.Pairs.Met == 0 || out.IDs < int64(100*faults) || out.Numbers < int64(10*faults) {
				t.Errorf("only %d ids and %d numbers were issued, under %v, of which %d pairs met", out.IDs, out.Numbers, out.Harms, out.Pairs.Met)
			}
		})
	}
}
