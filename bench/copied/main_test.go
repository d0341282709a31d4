package main

import "testing"

// TestCopied: the designs repeat ids, and the same without what goes wrong in them
// do not, so that it is not the model that does.
func TestCopied(t *testing.T) {
	for _, d := range designs {
		t.Run(d.name, func(t *testing.T) {
			seed, twice := d.find(100)
			if twice == "" {
				t.Fatal("no id was repeated")
			}
			t.Logf("seed %d: %s", seed, twice)
			for seed := uint64(1); seed <= 10; seed++ {
				if twice := d.run(seed, true); twice != "" {
					t.Fatalf("seed %d, with nothing wrong: %s", seed, twice)
				}
			}
		})
	}
}
