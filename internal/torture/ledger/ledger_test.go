//go:build linux

package ledger

import (
	"testing"

	"github.com/firn-id/firn"
)

// A ledger gives back what was written, also over the edge of a file, and while
// it is written.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	pen, r := NewPen(dir, 3, func() int64 { return 7 }), NewReader(dir, 3)
	if n, _, err := r.Last(); n != 0 || err != nil {
		t.Fatalf("an empty ledger has %d ids, %v", n, err)
	}
	const runs = 2*chunk + 5
	var want int64
	for i := range int64(runs) {
		for k := range i%3 + 1 {
			pen.Begin()
			if err := pen.Write(firn.ID(1 + 10*i + k)); err != nil {
				t.Fatal(err)
			}
			want++
		}
		if i%(chunk/2) != 0 && i < runs-3 {
			continue
		}
		n, last, err := r.Last()
		if n != want || last.First != firn.ID(1+10*i) || last.Count != i%3+1 || last.Begun != 7 || last.Boot != 7 || err != nil {
			t.Fatalf("after %d ids: %d, the last run %+v, %v", want, n, last, err)
		}
	}
	all, err := r.Runs()
	if err != nil || len(all) != runs {
		t.Fatalf("%d runs, %v", len(all), err)
	}
	for i, run := range all {
		if i := int64(i); run.First != firn.ID(1+10*i) || run.Count != i%3+1 {
			t.Fatalf("run %d is %+v", i, run)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
