package sim

import (
	"sync/atomic"
	"testing"
)

// TestClone: a process that is cloned and its clone issue the same ids, and none above what they could
// share: the schedule fails if one does.
func TestClone(t *testing.T) {
	for _, d := range draws {
		if d.name != "a virtual machine is cloned" {
			continue
		}
		total, f := simulate(t.Context(), 1, 100, each(d.draw), new(atomic.Int64))
		if f != nil {
			t.Fatal(f)
		}
		if n := total.Faults[cloned]; n < 50 || total.Cloned < n {
			t.Errorf("%d processes were cloned, and %d ids repeated", n, total.Cloned)
		}
		t.Logf("%d processes were cloned, and %d ids repeated", total.Faults[cloned], total.Cloned)
		return
	}
	t.Fatal("no process is cloned")
}
