package clienttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// variable says what a process of a test is: a role and the path of a page.
const variable = "FIRN_TEST_CLIENT"

// Outage is how long a page has ids after its agent was killed, with [Brief].
const Outage = 2 * time.Second

// An Agent is a process that serves a page at a path. Its lease is of a SQLite file.
type Agent struct {
	Path  string
	Lanes int // how many lanes the process has that Start starts. 0 means 1

	t     *testing.T
	store string // on a disk: agents wait longer for a store that a restart of the host forgets
	brief bool
	slow  bool
	run   func() *exec.Cmd // the program
	cmd   *exec.Cmd
	stop  io.Closer
}

// An Option of [Serve].
type Option func(*Agent)

// Brief makes the ids of a page end within [Outage] after its agent was killed, instead of five minutes.
func Brief(a *Agent) { a.brief = true }

// Slow makes an agent of a layout with 1,024 ids a second, so that a large batch has to wait on any machine.
func Slow(a *Agent) { a.slow = true }

const slowLayout = "time:32@1s,worker:10,seq:10;epoch=2025-01-01T00:00:00Z"

// Lanes makes an agent with several lanes.
func Lanes(n int) Option { return func(a *Agent) { a.Lanes = n } }

// As makes an agent that runs as another program than the test, such as one of [Machine.Go].
func As(run func() *exec.Cmd) Option { return func(a *Agent) { a.run = run } }

// Serve starts an agent with a page in a new directory, and waits until clients can use the page. The agent runs until the
// test ends. The test's package needs [Main].
func Serve(t *testing.T, options ...Option) *Agent {
	t.Helper()
	a := &Agent{t: t, Path: filepath.Join(Dir(t), "page"), store: filepath.Join(t.TempDir(), "ids.db")}
	a.run = func() *exec.Cmd { return exec.Command(os.Args[0]) }
	for _, o := range options {
		o(a)
	}
	a.Start()
	t.Cleanup(a.Kill)
	return a
}

// Start starts another agent at the path, after Stop or Kill, and waits until its page can be used.
func (a *Agent) Start() {
	a.t.Helper()
	a.cmd = a.run()
	a.cmd.Env = append(os.Environ(), variable+"=agent "+a.Path, variable+"_STORE="+a.store, fmt.Sprintf("%s_LANES=%d", variable, max(a.Lanes, 1)))
	if a.brief {
		a.cmd.Env = append(a.cmd.Env, variable+"_OUTAGE="+Outage.String())
	}
	if a.slow {
		a.cmd.Env = append(a.cmd.Env, variable+"_LAYOUT="+slowLayout)
	}
	a.cmd.Stderr = os.Stderr
	in, err := a.cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	a.stop = in
	paths := []string{a.Path}
	for lane := 1; lane < a.Lanes; lane++ {
		paths = append(paths, fmt.Sprintf("%s.%d", a.Path, lane))
	}
	before := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		before[i], _ = os.Stat(path)
	}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	end := time.Now().Add(time.Minute)
	for i, path := range paths {
		for !replaced(path, before[i]) {
			if time.Now().After(end) {
				a.t.Fatalf("the agent makes no page at %s", path)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// replaced reports whether a path has another file than before.
func replaced(path string, before os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && (before == nil || !os.SameFile(before, now))
}

// Stop ends the agent as an operator does: it closes its page and gives its worker back.
func (a *Agent) Stop() {
	a.t.Helper()
	a.stop.Close()
	if err := a.cmd.Wait(); err != nil {
		a.t.Errorf("agent: %v", err)
	}
}

// Kill kills the agent (SIGKILL). The page stays, and has ids until its horizon.
func (a *Agent) Kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// agent is the process of an [Agent].
func agent(path string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	st, err := sqlite.Open(ctx, os.Getenv(variable+"_STORE"))
	if err == nil {
		defer st.Close()
		err = serve(ctx, st, path)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// serve serves the page of each lane until ctx is done, or one fails.
func serve(ctx context.Context, st store.Store, path string) error {
	outage, _ := time.ParseDuration(os.Getenv(variable + "_OUTAGE")) // zero means the default
	lanes, _ := strconv.Atoi(os.Getenv(variable + "_LANES"))
	options := lease.Options{Outage: outage}
	if text := os.Getenv(variable + "_LAYOUT"); text != "" {
		options.Layout = firn.MustLayout(text)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, lanes)
	for lane := range lanes {
		l, err := lease.Open(ctx, st, &options)
		if err != nil {
			stop()
			ended <- err
			continue
		}
		go func() {
			ended <- errors.Join(page.Serve(ctx, l, path, &page.Options{Lanes: lanes, Lane: lane}), l.Close())
		}()
	}
	var errs []error
	for range lanes {
		if err := <-ended; err != nil {
			errs = append(errs, err)
			stop()
		}
	}
	return errors.Join(errs...)
}

// Go returns a process that takes ids of a page in Go until its standard input ends. The test's package needs [Main].
func Go(t *testing.T, path string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"=until "+path, "GOMAXPROCS=1")
	return cmd
}

// until is the process of [Go].
func until(path string) int {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	defer out.Flush()
	p, err := page.Open(path, &page.OpenOptions{Wait: time.Minute})
	for err == nil && ctx.Err() == nil {
		ids, e := p.Append(ctx, nil, 10)
		for _, id := range ids {
			fmt.Fprintln(out, int64(id))
		}
		err = e
		time.Sleep(2 * time.Millisecond)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		return 1
	}
	return 0
}

// once takes an id with a short wait, and prints it.
func once(path string) int {
	p, err := page.Open(path, &page.OpenOptions{Wait: 10 * time.Millisecond})
	if err == nil {
		defer p.Close()
		var id firn.ID
		if id, err = p.Next(context.Background()); err == nil {
			fmt.Println(int64(id))
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "client:", err)
	return 1
}

// goRuns returns a process in Go with the arguments of [Language.Runs]. The test's package needs [Main].
func goRuns(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), variable+"=runs", "GOMAXPROCS=1")
	return cmd
}

// runs is the process of [goRuns]: it takes ids in batches and alone, and prints the runs of consecutive ids. All ids increase.
func runs(args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var settings [3]int // batch, singles, pause
	for i := range settings {
		settings[i], _ = strconv.Atoi(args[2+i])
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var all []firn.ID
	last := firn.ID(0)
	p, err := page.Open(args[1], &page.OpenOptions{Wait: time.Minute})
	for err == nil && ctx.Err() == nil {
		all, err = p.Append(ctx, all[:0], settings[0])
		for len(all) < settings[0]+settings[1] && err == nil {
			var id firn.ID
			if id, err = p.Next(ctx); err == nil {
				all = append(all, id)
			}
		}
		var wrong error
		last, wrong = printRuns(out, all, last)
		if err = errors.Join(err, wrong, out.Flush()); wrong != nil {
			break
		}
		time.Sleep(time.Duration(settings[2]) * time.Millisecond)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		return 1
	}
	return 0
}

// printRuns prints the runs of consecutive ids, and returns the last id. They increase, from last on.
func printRuns(out io.Writer, all []firn.ID, last firn.ID) (firn.ID, error) {
	for i := 0; i < len(all); {
		first := all[i]
		for ; i < len(all) && (all[i] == first || all[i] == last+1); i++ {
			if all[i] <= last {
				return last, fmt.Errorf("%d after %d", all[i], last)
			}
			last = all[i]
		}
		fmt.Fprintln(out, int64(first), int64(last-first+1))
	}
	return last, nil
}

// OverLanes runs six processes on three lanes: together they use all three. Those whose lane the next agent does not have
// change to another page. client returns a process as [Go] does.
func OverLanes(t *testing.T, client func(path string) *exec.Cmd) {
	t.Helper()
	a := Serve(t, Lanes(3))
	var ids IDs
	var ends []func() int
	for range 6 {
		ends = append(ends, ids.Start(t, client(a.Path)))
	}
	time.Sleep(2 * time.Second)
	a.Stop()
	a.Lanes = 1
	a.Start()
	time.Sleep(time.Second)
	for i, end := range ends {
		if n := end(); n == 0 {
			t.Errorf("process %d made no ids", i)
		}
	}
	if workers := ids.Workers(); len(workers) != 3 {
		t.Errorf("ids by worker: %v, want those of 3 workers", workers)
	}
}
