//go:build linux && (amd64 || arm64)

package page_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

// Processes of the tests are this program again, told by a variable what to be.
func TestMain(m *testing.M) {
	switch role, path, _ := strings.Cut(os.Getenv("FIRN_TEST_PAGE"), " "); role {
	case "agent":
		os.Exit(agent(path))
	case "client":
		os.Exit(client(path))
	}
	os.Exit(m.Run())
}

// serve serves a page until the test ends or stop is called, which closes the lease too.
func serve(t *testing.T, st store.Store, path string) (l *lease.Lease, stop func() error) {
	t.Helper()
	l, err := lease.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- page.Serve(ctx, l, path, nil) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-done, l.Close())
	})
	t.Cleanup(func() { _ = stop() })
	return l, stop
}

func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/dev/shm", "firn-page-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func open(t *testing.T, path string) *page.Page {
	t.Helper()
	p, err := page.Open(path, &page.OpenOptions{Wait: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// A page gives ids of the lease's worker, all above those that the lease gave, and the lease gives no more.
func TestServe(t *testing.T) {
	st, path := memory.New(), filepath.Join(dir(t), "page")
	l, stop := serve(t, st, path)
	var own []firn.ID
	for {
		id, err := l.Next(t.Context())
		if err != nil {
			if firn.Retryable(err) || !strings.Contains(err.Error(), "page.Open") {
				t.Fatal(err)
			}
			break
		}
		own = append(own, id)
	}
	p := open(t, path)
	ids, err := p.Append(t.Context(), nil, 20_000)
	if err != nil || len(ids) != 20_000 {
		t.Fatal(len(ids), err)
	}
	for range 1000 {
		id, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	all := append(own, ids...)
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Error("ids do not increase")
	}
	state := l.State()
	parts, err := state.Layout.Decode(all[len(all)-1])
	if err != nil || parts.Worker != state.Worker || time.Since(parts.Time).Abs() > time.Second {
		t.Errorf("%+v, %v, of worker %d", parts, err, state.Worker)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := p.Next(t.Context()); !errors.As(err, new(*page.ClosedError)) {
		t.Errorf("after the end of its agent: %v", err)
	}

	// The next agent takes the same worker, above what the page gave; the client finds the new page.
	next, _ := serve(t, st, path)
	id, err := open(t, path).Next(t.Context())
	if err != nil || id <= all[len(all)-1] || next.State().Worker != state.Worker {
		t.Errorf("%d after %d, %v, worker %d after %d", id, all[len(all)-1], err, next.State().Worker, state.Worker)
	}
	if again, err := p.Next(t.Context()); err != nil || again <= id {
		t.Errorf("%d after %d, %v", again, id, err)
	}
	p.Close()
	if _, err := p.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
}

// Serve refuses what would repeat ids or take the page of another agent.
func TestServeRefuses(t *testing.T) {
	path := filepath.Join(dir(t), "page")
	_, stop := serve(t, memory.New(), path)
	open(t, path)
	for name, c := range map[string]struct {
		options lease.Options
		path    string
		says    string
	}{
		"lanes":         {lease.Options{Lanes: 2}, path + "2", "lanes"},
		"a grant file":  {lease.Options{GrantFile: path + ".grant"}, path + "2", "grant-file"},
		"a locked page": {lease.Options{}, path, "another agent serves it"},
		"another file":  {lease.Options{}, path + ".other", "another file"},
		"proc":          {lease.Options{}, "/proc/self/page", "file system is"},
	} {
		if err := os.WriteFile(path+".other", []byte("a file of somebody"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := lease.Open(t.Context(), memory.New(), &c.options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := page.Serve(ctx, l, c.path, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		cancel()
		l.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A copy of a page is refused, and what is no page.
func TestOpenRefuses(t *testing.T) {
	d := dir(t)
	path := filepath.Join(d, "page")
	serve(t, memory.New(), path)
	open(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, to byte) []byte {
		b := slices.Clone(whole)
		b[at] ^= to
		return b
	}
	for name, c := range map[string]struct {
		bytes []byte
		says  string
	}{
		"a copy":                 {whole, "copy"},
		"of another boot":        {change(20, 1), "started again"},
		"of another time":        {change(33, 1), "time namespace"},
		"of another format":      {change(8, 4), "format"},
		"cut":                    {whole[:2048], "not a page"},
		"longer":                 {append(slices.Clone(whole), 0), "not a page"},
		"empty":                  {nil, "not a page"},
		"something else":         {make([]byte, 4096), "not a page"},
		"a header that is wrong": {change(128, 0xff), "damaged"},
	} {
		bad := filepath.Join(d, "bad")
		if err := os.WriteFile(bad, c.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := page.Open(bad, nil)
		if e := new(page.UnusableError); !errors.As(err, &e) || !strings.Contains(e.Why, c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := page.Open(filepath.Join(d, "none"), &page.OpenOptions{Wait: -1}); !errors.As(err, new(*page.MissingError)) {
		t.Error(err)
	}
	if err := os.Symlink(path, filepath.Join(d, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := page.Open(filepath.Join(d, "link"), nil); err == nil {
		t.Error("a symbolic link is followed")
	}
	if _, err := page.Open("/proc/self/stat", nil); err == nil {
		t.Error("a file of /proc is a page")
	}
}

// An agent sees what others do to its page, closes it, and Serve returns.
func TestServeSees(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(path string) error
		says string
		// another lease may serve a page there
		again bool
	}{
		"removed":    {os.Remove, "removed", true},
		"the header": {func(path string) error { return poke(path, 80, 99) }, "header", false},
		"the word":   {func(path string) error { return poke(path, 1024, 0) }, "lowered", false},
		"the clock":  {func(path string) error { return poke(path, 1024+6, 0x7f) }, "ahead of the clock", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir(t), "page")
			l, err := lease.Open(t.Context(), memory.New(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			done := make(chan error, 1)
			go func() { done <- page.Serve(t.Context(), l, path, nil) }()
			p := open(t, path)
			if _, err := p.Append(t.Context(), nil, 100); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond) // the agent has seen the word
			if err := c.harm(path); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, new(*page.RestartError)) != c.again {
					t.Errorf("%v, want %q", err, c.says)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("Serve does not see it")
			}
			if id, err := p.Next(t.Context()); err == nil {
				t.Errorf("the page still gives %d", id)
			}
		})
	}
}

// poke writes a byte of a page, and zeros up to the next word.
func poke(path string, at int64, b byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 8 - at%8
	if b != 0 {
		n = 1
	}
	_, err = f.WriteAt(append([]byte{b}, make([]byte, n-1)...), at)
	return err
}

// noise fills the clock fields of a page with anything.
func noise(path string, stop <-chan struct{}) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for n := byte(1); ; n = n*5 + 7 {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := f.WriteAt([]byte{n, n, n * 3, n, n * 7, n, n, n * 11}, 1168); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// agent is a process that serves a page of a SQLite file until it is killed, or told to stop by the end of its input.
func agent(path string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	st, err := sqlite.Open(ctx, filepath.Join(filepath.Dir(path), "ids.db"))
	if err == nil {
		defer st.Close()
		var l *lease.Lease
		// A page of an agent that was killed ends within 2 s: its clients change to the next one.
		if l, err = lease.Open(ctx, st, &lease.Options{Outage: 2 * time.Second}); err == nil {
			err = errors.Join(page.Serve(ctx, l, path, nil), l.Close())
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// client is a process that prints ids until its input ends. It fails where ids of the process do not increase.
func client(path string) int {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	p, err := page.Open(path, &page.OpenOptions{Wait: time.Minute})
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		return 1
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	defer out.Flush()
	var last firn.ID
	for {
		select {
		case <-over:
			return 0
		default:
		}
		ids, err := p.Append(context.Background(), nil, 10)
		if err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			return 1
		}
		for _, id := range ids {
			if id <= last {
				fmt.Fprintf(os.Stderr, "client: %d after %d\n", id, last)
				return 1
			}
			last = id
			fmt.Fprintln(out, int64(id))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// spawn starts this program in a role. end ends its input and waits.
func spawn(t *testing.T, role, path string, out io.Writer) (cmd *exec.Cmd, end func() error) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FIRN_TEST_PAGE="+role+" "+path, "GOMAXPROCS=1")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() error {
		in.Close()
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = end()
	})
	return cmd, end
}

// TestProcesses: many processes take ids from one page while its agent is killed and started again, ended and started
// again, and the clock fields are filled with noise for a while. No id comes twice, and those of each process increase.
// make full has more processes, and does it twice.
func TestProcesses(t *testing.T) {
	processes, rounds := 24, 2
	if testserver.Long() {
		processes, rounds = 64, 4
	}
	path := filepath.Join(t.TempDir(), "page") // on a disk, with the SQLite file
	kill, end := spawn(t, "agent", path, os.Stderr)
	open(t, path)
	outs := make([]*os.File, processes)
	ends := make([]func() error, processes)
	for i := range outs {
		f, err := os.Create(filepath.Join(t.TempDir(), strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		outs[i] = f
		_, ends[i] = spawn(t, "client", path, f)
	}
	time.Sleep(2 * time.Second)
	for round := range rounds {
		if round%2 == 0 {
			_ = kill.Process.Kill()
		}
		_ = end()
		kill, end = spawn(t, "agent", path, os.Stderr)
		time.Sleep(2 * time.Second)
	}
	var errs []error
	for _, end := range ends {
		errs = append(errs, end())
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	counts(t, outs)
}

// counts reads the ids that processes printed, and looks for repeats.
func counts(t *testing.T, outs []*os.File) {
	t.Helper()
	seen, workers := map[firn.ID]bool{}, map[int64]int{}
	for i, f := range outs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); n++ {
			id, err := firn.ParseID(s.Text())
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] {
				t.Fatalf("process %d repeats %d", i, id)
			}
			seen[id] = true
			parts, err := firn.Default().Decode(id)
			if err != nil {
				t.Fatal(err)
			}
			workers[parts.Worker]++
		}
		if n == 0 {
			t.Errorf("process %d made no ids", i)
		}
	}
	t.Logf("%d ids of %d processes, by worker: %v", len(seen), len(outs), workers)
	if len(workers) < 2 {
		t.Error("no process changed to the page of another worker")
	}
}

// TestNoise: what clock fields say decides nothing about uniqueness.
func TestNoise(t *testing.T) {
	path := filepath.Join(dir(t), "page")
	serve(t, memory.New(), path)
	open(t, path)
	stop := make(chan struct{})
	var wg, noisy sync.WaitGroup
	noisy.Go(func() {
		if err := noise(path, stop); err != nil {
			t.Error(err)
		}
	})
	all := make([][]firn.ID, 8)
	for i := range all {
		p := open(t, path)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			for ctx.Err() == nil {
				ids, _ := p.Append(ctx, nil, 7) // refusals are no fault here
				all[i] = append(all[i], ids...)
			}
		})
	}
	wg.Wait()
	close(stop)
	noisy.Wait()
	ids := slices.Concat(all...)
	n := len(ids)
	slices.Sort(ids)
	if t.Logf("%d ids", n); n < 1000 || len(slices.Compact(ids)) != n {
		t.Errorf("%d of %d ids are different", len(slices.Compact(ids)), n)
	}
}
