package clienttest

import (
	"bytes"
	"io"
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// IDs are those that all programs of a test have printed. The zero value has none. Its methods may be called by
// several goroutines.
type IDs struct {
	mu      sync.Mutex
	seen    map[int64]string // who made it
	workers map[int64]int
}

// Run runs a program and returns how many ids it printed. The test fails if the program does, if an id comes twice, or if the
// ids of a thread do not increase.
func (s *IDs) Run(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	return s.Start(t, cmd)()
}

// Start starts a program. end ends its standard input, waits for the program and does the rest of Run.
func (s *IDs) Start(t *testing.T, cmd *exec.Cmd) (end func() int) {
	t.Helper()
	in, wait := s.start(t, cmd)
	return func() int {
		t.Helper()
		in.Close()
		return wait()
	}
}

func (s *IDs) start(t *testing.T, cmd *exec.Cmd) (in io.Closer, wait func() int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("%s: %v", who(cmd), err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return in, func() int {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", who(cmd), err, errs.String())
		}
		return s.Add(t, who(cmd)+" "+strconv.Itoa(cmd.Process.Pid), out.String())
	}
}

func who(cmd *exec.Cmd) string { return strings.Join(cmd.Args, " ") }

// Add adds what a program printed, and returns how many ids that are. It does the checks of Run.
func (s *IDs) Add(t *testing.T, who, out string) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.workers = map[int64]string{}, map[int64]int{}
	}
	n, last := 0, int64(0)
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" {
			last = 0
			continue
		}
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatalf("%s: printed %q, which is no id", who, line)
		}
		if other, ok := s.seen[id]; ok {
			t.Fatalf("%s: %d comes twice, first from %s", who, id, other)
		}
		if id <= last {
			t.Fatalf("%s: %d after %d", who, id, last)
		}
		last = id
		s.seen[id] = who
		if parts, err := firn.Default().Decode(firn.ID(id)); err == nil {
			s.workers[parts.Worker]++
		}
		n++
	}
	return n
}

// Workers returns how many ids are of each worker.
func (s *IDs) Workers() map[int64]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.workers)
}

// Count returns how many ids there are.
func (s *IDs) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// Storm runs the programs that clients make, and two in Go and two in C, on one page, while its agent is stopped and started
// again, and killed and started again. All run until their standard input ends, as the documentation of the package says.
// No id comes twice, those of each process increase, and they are of two workers at least.
func Storm(t *testing.T, clients ...func(path string) *exec.Cmd) {
	t.Helper()
	c := Compile(t, "gcc", Root(t)+"/clients/c/testdata/take.c", Root(t)+"/clients/c", "-O2")
	inC := func(path string) *exec.Cmd { return exec.CommandContext(t.Context(), c, "until", path) }
	inGo := func(path string) *exec.Cmd { return Go(t, path) }
	a := Serve(t, Brief)
	var ids IDs
	var inputs []io.Closer
	var waits []func() int
	for _, client := range append([]func(string) *exec.Cmd{inC, inGo, inC, inGo}, clients...) {
		in, wait := ids.start(t, client(a.Path))
		inputs, waits = append(inputs, in), append(waits, wait)
	}
	time.Sleep(time.Second + time.Duration(len(clients))*400*time.Millisecond) // all have begun
	a.Stop()
	time.Sleep(100 * time.Millisecond) // nobody has ids
	a.Start()
	time.Sleep(time.Second)
	a.Kill()
	a.Start()
	time.Sleep(Outage + time.Second)
	for _, in := range inputs {
		in.Close()
	}
	for i, wait := range waits {
		if n := wait(); n == 0 {
			t.Errorf("process %d made no ids", i)
		}
	}
	t.Logf("%d ids of %d processes, by worker: %v", ids.Count(), len(waits), ids.workers)
	if len(ids.workers) < 2 {
		t.Error("no process changed to the page of another worker")
	}
}
