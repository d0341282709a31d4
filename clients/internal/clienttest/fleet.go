//go:build !windows

package clienttest

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A Language makes processes that take ids of a page, with the arguments "runs PATH BATCH SINGLES PAUSE".
type Language struct {
	Name string
	Runs func(args ...string) *exec.Cmd
}

// Languages returns all languages that have a client. The test's package needs [Main].
func Languages(t *testing.T) []Language {
	t.Helper()
	c := Compile(t, "gcc", Root(t)+"/clients/c/testdata/take.c", Root(t)+"/clients/c", "-O2")
	java, node, python, php := Java(t), JavaScript(t), Python(t), PHP(t)
	with := func(run func(args ...string) *exec.Cmd, program string) func(args ...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd { return run(append([]string{program}, args...)...) }
	}
	return []Language{
		{"C", func(args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), c, args...) }},
		{"Go", func(args ...string) *exec.Cmd { return goRuns(t, args...) }},
		{"Java", with(java, "Take")},
		{"Node", with(node, "take.js")},
		{"Python", with(python, "take.py")},
		{"PHP", with(php, "take.php")},
	}
}

// A Fleet is processes that take ids of one page all the time. Each merges consecutive ids into runs, checks that its ids
// increase, and prints the runs. Its methods must not be called at once.
type Fleet struct {
	Paused, Replaced int             // processes that were stopped and continued, and that were killed and replaced
	Workers          map[int64]int64 // after End: how many ids are of each worker

	t      *testing.T
	path   string
	args   []string
	layout firn.Layout
	now    []*member
	gone   []*member // killed
	total  atomic.Int64
	rng    *rand.Rand
}

// Pace is how a process takes ids: batches of so many, then so many alone, then a pause.
type Pace struct {
	Batch, Singles int
	Pause          time.Duration
}

// StartFleet starts n processes on the page at a path, of each language as many as of the others.
func StartFleet(t *testing.T, path string, n int, layout firn.Layout, pace Pace, languages []Language) *Fleet {
	t.Helper()
	f := &Fleet{
		t: t, path: path, layout: layout, rng: rand.New(rand.NewPCG(54, 24)),
		args: []string{strconv.Itoa(pace.Batch), strconv.Itoa(pace.Singles), strconv.FormatInt(pace.Pause.Milliseconds(), 10)},
	}
	for i := range n {
		f.now = append(f.now, f.start(languages[i%len(languages)]))
	}
	return f
}

// A member is one process of a fleet.
type member struct {
	language Language
	who      string
	cmd      *exec.Cmd
	in       io.Closer
	errs     bytes.Buffer
	begun    atomic.Bool
	runs     []run         // read once done is closed
	err      error         // likewise: what is wrong with what it printed
	done     chan struct{} // closed at the end of its output
}

// A run is count consecutive ids, from first on.
type run struct{ first, count int64 }

func (f *Fleet) start(l Language) *member {
	f.t.Helper()
	m := &member{language: l, cmd: l.Runs(append([]string{"runs", f.path}, f.args...)...), done: make(chan struct{})}
	m.cmd.Stderr = &m.errs
	in, err := m.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = m.cmd.Process.Kill() })
	m.in, m.who = in, fmt.Sprintf("%s %d", l.Name, m.cmd.Process.Pid)
	go func() {
		defer close(m.done)
		m.err = m.read(out, &f.total)
		_, _ = io.Copy(io.Discard, out) // a process that fails is not kept waiting
	}()
	return m
}

// read reads runs to the end of the output. The last line of a process that was killed may be cut off.
func (m *member) read(out io.Reader, total *atomic.Int64) error {
	last := int64(0)
	for r := bufio.NewReaderSize(out, 1<<16); ; {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		first, count, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		at, err1 := strconv.ParseInt(string(first), 10, 64)
		n, err2 := strconv.ParseInt(string(count), 10, 64)
		if !ok || err1 != nil || err2 != nil || n < 1 {
			return fmt.Errorf("printed %q, which is no run", line)
		}
		if at <= last {
			return fmt.Errorf("%d after %d", at, last)
		}
		last = at + n - 1
		m.runs = append(m.runs, run{at, n})
		total.Add(n)
		m.begun.Store(true)
	}
}

// Begun waits until all processes have ids.
func (f *Fleet) Begun() {
	f.t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		i := slices.IndexFunc(f.now, func(m *member) bool { return !m.begun.Load() })
		if i < 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s has no ids", f.now[i].who)
		}
	}
}

// Total returns how many ids were printed until now.
func (f *Fleet) Total() int64 { return f.total.Load() }

// Pause stops n processes (SIGSTOP), calls meanwhile, and continues them.
func (f *Fleet) Pause(n int, meanwhile func()) {
	f.t.Helper()
	some := f.rng.Perm(len(f.now))[:n]
	for _, i := range some {
		if err := f.now[i].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			f.t.Errorf("%s: %v", f.now[i].who, err)
		}
	}
	meanwhile()
	for _, i := range some {
		_ = f.now[i].cmd.Process.Signal(syscall.SIGCONT)
	}
	f.Paused += n
}

// Replace kills n processes, and starts others in their place.
func (f *Fleet) Replace(n int) {
	f.t.Helper()
	for _, i := range f.rng.Perm(len(f.now))[:n] {
		m := f.now[i]
		_ = m.cmd.Process.Kill()
		<-m.done
		_ = m.cmd.Wait()
		f.check(m)
		f.gone = append(f.gone, m)
		f.now[i] = f.start(m.language)
	}
	f.Replaced += n
}

// End ends all processes, and returns how many ids there are of each language. The test fails if a process does, if its ids do
// not increase, or if an id comes twice.
func (f *Fleet) End() map[string]int64 {
	f.t.Helper()
	for _, m := range f.now {
		m.in.Close()
	}
	for _, m := range f.now {
		stuck := time.AfterFunc(2*time.Minute, func() { _ = m.cmd.Process.Kill() })
		<-m.done
		if err := m.cmd.Wait(); err != nil {
			f.t.Errorf("%s: %v: %s", m.who, err, m.errs.String())
		}
		stuck.Stop()
		f.check(m)
	}
	ids := map[string]int64{}
	f.Workers = map[int64]int64{}
	var all []run
	for _, m := range slices.Concat(f.gone, f.now) {
		all = append(all, m.runs...)
		for _, r := range m.runs {
			ids[m.language.Name] += r.count
			if parts, err := f.layout.Decode(firn.ID(r.first)); err == nil {
				f.Workers[parts.Worker] += r.count
			}
		}
		m.runs = nil
	}
	f.t.Logf("%d runs", len(all))
	if n, example := repeats(all); n > 0 {
		f.t.Errorf("%d ids repeat, such as %d", n, example)
	}
	return ids
}

func (f *Fleet) check(m *member) {
	f.t.Helper()
	if m.err != nil {
		f.t.Errorf("%s: %v", m.who, m.err)
	}
	if len(m.runs) == 0 && m.begun.Load() {
		f.t.Errorf("%s made no ids", m.who)
	}
}

// repeats sorts runs, and returns how many ids are in more than one of them.
func repeats(all []run) (n, example int64) {
	slices.SortFunc(all, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	next := int64(0) // above all runs so far
	for _, r := range all {
		if both := min(next, r.first+r.count) - r.first; both > 0 {
			n, example = n+both, r.first
		}
		next = max(next, r.first+r.count)
	}
	return n, example
}
