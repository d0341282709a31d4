//go:build amd64 || arm64

package c_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
)

// A liner is a process that prints an id for each line.
type liner struct {
	in   io.Writer
	out  *bufio.Scanner
	last firn.ID
}

// worker takes an id, which must be above those before it and new, and returns its worker.
func (l *liner) worker(t *testing.T, seen map[firn.ID]bool) int64 {
	t.Helper()
	if _, err := io.WriteString(l.in, "\n"); err != nil || !l.out.Scan() {
		t.Fatal("no id", err, l.out.Err())
	}
	id, err := firn.ParseID(l.out.Text())
	if err != nil || id <= l.last || seen[id] {
		t.Fatalf("%d after %d, %v", id, l.last, err)
	}
	l.last, seen[id] = id, true
	parts, err := firn.Default().Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return parts.Worker
}

// TestLanes: each process takes a lane and keeps to it, lanes get the same number of processes, and a process of a lane that
// the next agent does not have takes one that it has.
func TestLanes(t *testing.T) {
	a := clienttest.Serve(t, clienttest.Lanes(3))
	program := compile(t, "gcc", "testdata/line.c", ".", "-O2")
	seen, count := map[firn.ID]bool{}, map[int64]int{}
	all := make([]*liner, 6)
	for i := range all {
		cmd := exec.CommandContext(t.Context(), program, a.Path)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}()
		all[i] = &liner{in: in, out: bufio.NewScanner(out)}
		worker := all[i].worker(t, seen)
		count[worker]++
		for range 100 {
			if again := all[i].worker(t, seen); again != worker {
				t.Fatalf("process %d changed from worker %d to %d", i, worker, again)
			}
		}
	}
	if count[0] != 2 || count[1] != 2 || count[2] != 2 {
		t.Errorf("processes by worker: %v", count)
	}
	for _, n := range []int{2, 1, 3} {
		a.Stop()
		a.Lanes = n
		a.Start()
		for _, l := range all {
			l.worker(t, seen)
		}
	}
}
