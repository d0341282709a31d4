//go:build amd64 || arm64

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	shared "github.com/firn-id/firn/page"
)

// An agent is upgraded: the old one is stopped, and then a new binary is started. Clients wait meanwhile. Then they continue above
// what they had.
func TestAgentUpgrade(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(pageDir(t), "page"), filepath.Join(t.TempDir(), "ids.db")
	old := agent(t, store, path)
	clients := startClients(t, path, 8)
	time.Sleep(time.Second)
	self, err := exec.LookPath("firn")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "firn")
	if out, err := exec.Command("cp", "-L", self, binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	old.stop(t)
	next := &agentProcess{process: command(t, store, "agent", "--json", path)}
	next.Path = binary
	out, err := next.StdoutPipe()
	if err == nil {
		err = next.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Process.Kill(); next.Wait() })
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&next.line); err != nil {
		t.Fatalf("%v\n%s", err, next.errs.String())
	}
	time.Sleep(time.Second)
	workers, longest := clients.end(t)
	t.Logf("ids by worker: %v; longest time without an id: %s", workers, longest)
	if next.line.Worker != old.line.Worker || len(workers) != 1 {
		t.Errorf("worker %d after %d; ids by worker: %v", next.line.Worker, old.line.Worker, workers)
	}
}

// fill writes files until the file system is full, and returns how to remove them.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	name := filepath.Join(dir, "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// If the file system is full, the agent says so. Processes that have a page continue. A page that is lost meanwhile is made
// again when there is room.
func TestAgentFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		fmt.Fprintln(os.Stderr, "NOT TESTED: a full file system needs the right to mount one:", err)
		t.SkipNow()
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path, store := filepath.Join(dir, "page"), filepath.Join(t.TempDir(), "ids.db")
	empty := fill(t, dir)
	p := command(t, store, "agent", path)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code, want := p.code(t), "the file system of "+dir+" has no room for 4 KB: remove files there, or use another path"; code != 1 || !strings.Contains(p.errs.String(), want) {
		t.Errorf("exit code %d, no %q: %s", code, want, p.errs.String())
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("it left %v, %v", names, err)
	}
	empty()
	a := agent(t, store, path)
	clients := startClients(t, path, 4)
	empty = fill(t, dir)
	time.Sleep(500 * time.Millisecond)
	if err := os.Remove(path); err != nil { // its block stays in use while it is mapped
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "more"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write(make([]byte, 1<<16)) // as much as there is room for
	f.Close()
	await(t, "the log", func() bool { return strings.Contains(a.log.String(), "has no room for 4 KB") })
	empty()
	openPage(t, path, long)
	time.Sleep(500 * time.Millisecond)
	workers, longest := clients.end(t)
	t.Logf("ids by worker: %v; longest time without an id: %s", workers, longest)
	a.stop(t)
}

// The directory is deleted while agent and clients have the page, as a volume of a pod that ends. The agent ends with an
// error that says so, and clients get one.
func TestAgentDirectoryDeleted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pageDir(t), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "page")
	a := agent(t, filepath.Join(t.TempDir(), "ids.db"), path)
	p := openPage(t, path, -1)
	if _, err := p.Append(t.Context(), nil, 100); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if code, want := a.code(t), "there is no directory "+dir; code != 1 || !strings.Contains(a.log.String(), want) {
		t.Errorf("exit code %d, no %q: %s", code, want, a.log)
	}
	var missing *shared.MissingError
	await(t, "the error of a client", func() bool { _, err := p.Next(t.Context()); return errors.As(err, &missing) })
}

// A container is killed and started again, with the old file in its volume: here a process that is the first of a namespace of
// its own. The file may also be a copy, of a volume that was put back.
func TestAgentContainerStartedAgain(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "NOT TESTED: this needs the right to make a pid namespace: %v %s\n", err, out)
		t.SkipNow()
	}
	dir, store := pageDir(t), filepath.Join(t.TempDir(), "ids.db")
	path := filepath.Join(dir, "page")
	inside := func() *agentProcess {
		p := command(t, store, "agent", "--json", path, "--outage", "2s")
		p.Args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}, p.Args...)
		var err error
		if p.Path, err = exec.LookPath("unshare"); err != nil {
			t.Fatal(err)
		}
		out, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill(); p.Wait() })
		a := &agentProcess{process: p}
		if err := json.NewDecoder(bufio.NewReader(out)).Decode(&a.line); err != nil {
			t.Fatalf("%v\n%s", err, p.errs.String())
		}
		if a.line.PID != 1 {
			t.Errorf("the agent is process %d of its container", a.line.PID)
		}
		return a
	}
	a := inside()
	clients := startClients(t, path, 4)
	for round := range 2 {
		time.Sleep(time.Second)
		if err := a.Process.Kill(); err != nil { // and with it its child
			t.Fatal(err)
		}
		_ = a.Wait()
		if round == 1 { // the volume was put back
			if out, err := exec.Command("cp", path, path+".copy").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := os.Rename(path+".copy", path); err != nil {
				t.Fatal(err)
			}
			if _, err := shared.Open(path, nil); err == nil || !strings.Contains(err.Error(), "it is a copy") {
				t.Errorf("a copy: %v", err)
			}
		}
		await(t, "the lock of the old agent", func() bool { return shared.Check(path) == nil })
		a = inside()
		time.Sleep(3 * time.Second)
	}
	workers, longest := clients.end(t)
	t.Logf("ids by worker: %v; longest time without an id: %s", workers, longest)
	if workers[a.line.Worker] == 0 {
		t.Errorf("no client has the last page, of worker %d: %v", a.line.Worker, workers)
	}
}
