//go:build !windows

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe in place of a file waits for its writer. The first signal ends the command all the same,
// whether it waits for the writer or for what the writer sends.
func TestInterruptedPipe(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"next --config PIPE",
		"worker ls --config PIPE",
		"config check PIPE",
		"serve --config PIPE",
		"run --config PIPE -- true",
		"verify PIPE",
		"backfill PIPE --store none --worker 1 --layout time:41@1s,worker:3,seq:19;epoch=2010-01-01T00:00:00Z",
		"next photo --as opaque --keys PIPE",
		"public encode --as opaque --series photo --keys PIPE 5",
		"shard where --shard 1 --map-file PIPE",
		"shard init --keys-by range --bounds PIPE --server a=postgres://u@127.0.0.1:1/x",
	} {
		for _, writer := range []bool{false, true} {
			name := map[bool]string{false: "no writer: ", true: "a silent writer: "}[writer] + line
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pipe := filepath.Join(t.TempDir(), "pipe")
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Fatal(err)
				}
				p := command(t, "", strings.Fields(strings.Replace(line, "PIPE", pipe, 1))...)
				p.Env = append(p.Env, "FIRN_NO_SUCH_VARIABLE=1", "FIRN_STORE=sqlite:"+filepath.Join(t.TempDir(), "ids.db"))
				p.Dir = t.TempDir()
				write(t, p.Dir, "firn.yaml", "series: { photo: { kind: flake } }\n")
				warned := waitForWarning(t, p)
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
				select {
				case <-warned:
				case <-time.After(5 * time.Second): // one that reads its settings before it warns
				}
				if writer {
					f, err := os.OpenFile(pipe, os.O_RDWR, 0) // which does not wait for a reader
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
				}
				time.Sleep(300 * time.Millisecond) // until it is at the pipe
				if err := p.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
				over := time.AfterFunc(30*time.Second, func() { p.Process.Kill() })
				defer over.Stop()
				code, signal := p.code(t), p.ProcessState.Sys().(syscall.WaitStatus).Signal()
				if code != 130 && signal != syscall.SIGINT { // a shell shows both as 130
					t.Errorf("exit code %d, %v", code, p.ProcessState)
				}
			})
		}
	}
}

// SIGQUIT prints what each goroutine does, which no error of firn's could say of a process that hangs.
func TestQuitPrintsGoroutines(t *testing.T) {
	t.Parallel()
	p := command(t, filepath.Join(t.TempDir(), "ids.db"), "next", "-n", "1000000000")
	p.readLine(t)
	if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 2 || !strings.Contains(p.errs.String(), "SIGQUIT: quit") || !strings.Contains(p.errs.String(), "goroutine ") {
		t.Errorf("exit code %d, %.200s", code, p.errs.String())
	}
}

// waitForWarning returns a channel that is closed when a command has printed its first line to standard
// error.
func waitForWarning(t *testing.T, p *process) <-chan struct{} {
	t.Helper()
	p.Stderr = nil
	r, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	warned := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(r)
		if lines.Scan() {
			close(warned)
		}
		for lines.Scan() {
		}
	}()
	return warned
}
