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
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store/sqlite"
)

// variable says what a process of a test is: a role and the path of a page.
const variable = "FIRN_TEST_CLIENT"

// Outage is how long a page has ids after its agent was killed, with [Brief].
const Outage = 2 * time.Second

// An Agent is a process that serves a page at a path. Its lease is of a SQLite file.
type Agent struct {
	Path string

	t     *testing.T
	store string // on a disk: agents wait longer for a store that a restart of the host forgets
	brief bool
	cmd   *exec.Cmd
	stop  io.Closer
}

// An Option of [Serve].
type Option func(*Agent)

// Brief makes the ids of a page end within [Outage] after its agent was killed, instead of five minutes.
func Brief(a *Agent) { a.brief = true }

// Serve starts an agent with a page in a new directory, and waits until clients can use the page. The agent runs until the
// test ends. The test's package needs [Main].
func Serve(t *testing.T, options ...Option) *Agent {
	t.Helper()
	a := &Agent{t: t, Path: filepath.Join(Dir(t), "page"), store: filepath.Join(t.TempDir(), "ids.db")}
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
	a.cmd = exec.Command(os.Args[0])
	a.cmd.Env = append(os.Environ(), variable+"=agent "+a.Path, variable+"_STORE="+a.store)
	if a.brief {
		a.cmd.Env = append(a.cmd.Env, variable+"_OUTAGE="+Outage.String())
	}
	a.cmd.Stderr = os.Stderr
	in, err := a.cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	a.stop = in
	before, _ := os.Stat(a.Path)
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		now, err := os.Stat(a.Path)
		if err == nil && (before == nil || !os.SameFile(before, now)) {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("the agent makes no page at %s", a.Path)
		}
	}
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
		options := &lease.Options{}
		options.Outage, _ = time.ParseDuration(os.Getenv(variable + "_OUTAGE")) // zero means the default
		var l *lease.Lease
		if l, err = lease.Open(ctx, st, options); err == nil {
			err = errors.Join(page.Serve(ctx, l, path, nil), l.Close())
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
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
