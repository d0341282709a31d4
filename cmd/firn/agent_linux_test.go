//go:build amd64 || arm64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	shared "github.com/firn-id/firn/page"
)

// An agentProcess is firn agent as a process of its own.
type agentProcess struct {
	*process
	line agentLine
	log  logFile
	out  *bufio.Reader
}

// pageDir is a directory in memory that pages can be in.
func pageDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "firn-agent-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// agent starts firn agent, and returns when its page can be used.
func agent(t *testing.T, store string, args ...string) *agentProcess {
	t.Helper()
	a := newAgentProcess(t, store, args...)
	if err := json.NewDecoder(a.out).Decode(&a.line); err != nil {
		t.Fatalf("%v\n%s", err, a.log)
	}
	return a
}

// newAgentProcess starts firn agent.
func newAgentProcess(t *testing.T, store string, args ...string) *agentProcess {
	t.Helper()
	p := command(t, store, append([]string{"agent", "--json"}, args...)...)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p.Stderr = file
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() }) // if it has not ended
	return &agentProcess{process: p, log: logFile{file.Name()}, out: bufio.NewReader(out)}
}

// stop ends an agent, which gives its worker back.
func (a *agentProcess) stop(t *testing.T) {
	t.Helper()
	kill(t, a.Process.Pid, syscall.SIGTERM)
	if code := a.code(t); code != 0 {
		t.Errorf("the agent ends with %d after SIGTERM: %s", code, a.log)
	}
}

// openPage opens a page.
func openPage(t *testing.T, path string, wait time.Duration) *shared.Page {
	t.Helper()
	p, err := shared.Open(path, &shared.OpenOptions{Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// workerOf is the worker of an id of the layout firn.
func workerOf(t *testing.T, id firn.ID) int64 {
	t.Helper()
	parts, err := firn.Default().Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return parts.Worker
}

// A gap is a time without an id.
type gap struct {
	end    time.Time
	lasted time.Duration
	change bool // the next id is of another worker
}

// longestGap returns the longest of the gaps that ended between two times, and the longest at a change to another page.
func longestGap(from, to time.Time, all ...[]gap) (longest, change time.Duration) {
	for _, g := range slices.Concat(all...) {
		if g.end.After(from) && !g.end.After(to) {
			longest = max(longest, g.lasted)
			if g.change {
				change = max(change, g.lasted)
			}
		}
	}
	return longest, change
}

// idler does nothing but sleep for a millisecond, again and again. Its gaps are those of a process that waits for the scheduler
// and not for firn. stop returns them.
func idler() (stop func() []gap) {
	over, done := make(chan struct{}), make(chan []gap)
	go func() {
		var all []gap
		for last := time.Now(); ; {
			select {
			case <-over:
				done <- all
				return
			case <-time.After(time.Millisecond):
			}
			now := time.Now()
			if d := now.Sub(last); d > shortGap {
				all = append(all, gap{now, d, false})
			}
			last = now
		}
	}()
	return func() []gap { close(over); return <-done }
}

// shortGap is how long a gap may be that is not kept.
const shortGap = 3 * time.Millisecond

// pageClients are clients that take ids all the time until stop, each from a page that it opened itself.
type pageClients struct {
	stop    context.CancelFunc
	done    sync.WaitGroup
	ids     [][]firn.ID
	longest []time.Duration // without an id
	gaps    [][]gap         // the long ones
	errs    []error
}

func startClients(t *testing.T, path string, n int) *pageClients {
	t.Helper()
	worker := func(id firn.ID) firn.ID { return id >> 12 & 1023 } // in the layout firn
	ctx, cancel := context.WithCancel(t.Context())
	c := &pageClients{stop: cancel, ids: make([][]firn.ID, n), longest: make([]time.Duration, n), gaps: make([][]gap, n), errs: make([]error, n)}
	for i := range n {
		p := openPage(t, path, 10*time.Minute)
		c.done.Go(func() {
			for last := time.Now(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
				had := len(c.ids[i])
				ids, err := p.Append(ctx, c.ids[i], 3)
				now := time.Now()
				changed := err == nil && had > 0 && worker(ids[had]) != worker(ids[had-1])
				if d := now.Sub(last); changed || d > shortGap {
					c.gaps[i] = append(c.gaps[i], gap{now, d, changed})
				}
				if c.ids[i] = ids; err != nil {
					if ctx.Err() == nil {
						c.errs[i] = err
					}
					return
				}
				c.longest[i], last = max(c.longest[i], now.Sub(last)), now
			}
		})
	}
	t.Cleanup(cancel)
	return c
}

// end stops the clients, and returns how many ids came of each worker, and the longest time without an id. No id may come
// twice, and those of each client must increase.
func (c *pageClients) end(t *testing.T) (workers map[int64]int, longest time.Duration) {
	t.Helper()
	c.stop()
	c.done.Wait()
	workers = map[int64]int{}
	for i, ids := range c.ids {
		if c.errs[i] != nil {
			t.Errorf("client %d: %v", i, c.errs[i])
		}
		for k := 1; k < len(ids); k++ {
			if ids[k] <= ids[k-1] {
				t.Fatalf("client %d: %d after %d", i, ids[k], ids[k-1])
			}
		}
		for _, id := range ids {
			workers[workerOf(t, id)]++
		}
	}
	all := slices.Concat(c.ids...)
	n := len(all)
	slices.Sort(all)
	if different := len(slices.Compact(all)); different != n {
		t.Fatalf("%d ids, and %d of them repeat", n, n-different)
	}
	return workers, slices.Max(c.longest)
}

// An agent serves a page until it is told to stop. The next one takes the same worker, and clients find its page.
func TestAgent(t *testing.T) {
	t.Parallel()
	dir, store := pageDir(t), filepath.Join(t.TempDir(), "ids.db")
	path := filepath.Join(dir, "page")
	first := agent(t, store, path)
	if l := first.line; l.Event != "serving" || l.PID != first.Process.Pid || l.Path != path || l.Lanes != 1 || l.Pool != "default" || !strings.HasPrefix(l.Store, "sqlite:") {
		t.Errorf("%+v", l)
	}
	p := openPage(t, path, 10*time.Second)
	ids, err := p.Append(t.Context(), nil, 5000)
	if err != nil || workerOf(t, ids[0]) != first.line.Worker {
		t.Fatal(err)
	}
	out, err := command(t, store, "worker", "ls").Output()
	if err != nil || !strings.Contains(string(out), " page "+path) {
		t.Errorf("firn worker ls: %v\n%s", err, out)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Error(info, err)
	}
	first.stop(t)
	if _, held := workerStates(t, store); held != 0 {
		t.Error("the worker was not given back")
	}
	second := agent(t, store, path, "--mode", "600")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	id, err := p.Next(t.Context())
	if err != nil || id <= ids[len(ids)-1] || workerOf(t, id) != first.line.Worker {
		t.Errorf("%d after %d, %v", id, ids[len(ids)-1], err)
	}
	second.stop(t)
}

// An agent says in plain text what it serves.
func TestAgentText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(pageDir(t), "page")
	p := command(t, filepath.Join(t.TempDir(), "ids.db"), "agent", path, "--lanes", "2")
	r := p.readLine(t)
	var text strings.Builder
	for range 3 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(line)
	}
	for _, want := range []string{"2 lanes, up to " + path + ".1\n", "pool default, worker ", "without the store and the agent ids continue for "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
	kill(t, p.Process.Pid, syscall.SIGINT)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.errs.String())
	}
}

// An agent that cannot serve a path says why, and takes no worker.
func TestAgentRefuses(t *testing.T) {
	t.Parallel()
	dir, store := pageDir(t), filepath.Join(t.TempDir(), "ids.db")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("a file of somebody"), 0o600); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(dir, "held")
	first := agent(t, store, held)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "there is no PATH to serve a page at\nfirn: hint: firn agent /run/firn/page\n"},
		{"page", 2, "PATH \"page\" has no directory\nfirn: hint: firn agent /run/firn/page\n"},
		{dir + "/a " + dir + "/b", 2, "is a second path"},
		{dir, 1, "it is a directory: name a file in it, such as " + dir + "/page\n"},
		{dir + "/none/page", 1, "there is no directory " + dir + "/none: mkdir -p " + dir + "/none\n"},
		{dir + "/file", 1, "it is another file: use another path, or remove it\n"},
		{dir + "/file/page", 1, "is not a directory"},
		{held, 1, fmt.Sprintf("page %s: another agent serves it (process %d): use another path, or end that agent first\n", held, first.Process.Pid)},
		{"/proc/page", 1, "its file system is type 0x9fa0: use a path on tmpfs, ext4 or xfs"},
		{dir + "/a --mode 440", 2, "--mode \"440\" is not the mode of a page"},
		{dir + "/a --mode rw", 2, "is not the mode of a page"},
		{dir + "/a --lanes 65", 2, "--lanes 65: there can be 1 to 64"},
		{dir + "/a --lanes 2 --worker 7", 2, "--lanes 2: there is one worker 7"},
		{dir + "/a --listen 6382", 2, "has no host"},
		{dir + "/a --pool none", 1, "has no pool \"none\""},
	} {
		p := command(t, store, append([]string{"agent"}, strings.Fields(c.args)...)...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(long, func() { _ = p.Process.Kill() })
		code := p.code(t)
		stuck.Stop()
		if code != c.code || !strings.Contains(p.errs.String(), c.says) {
			t.Errorf("firn agent %s: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.says, p.errs.String())
		}
	}
	if _, n := workerStates(t, store); n != 1 {
		t.Errorf("%d workers are held", n)
	}
}

// An agent is killed and started again while clients make ids. They continue with the old page, and change to the new
// one when it ends: no id comes twice, and nobody is without ids for long.
func TestAgentIsKilled(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(pageDir(t), "page"), filepath.Join(t.TempDir(), "ids.db")
	a := agent(t, store, path, "--outage", "3s")
	clients := startClients(t, path, 8)
	idle := idler()
	last := []int64{a.line.Worker}
	n := 2
	if testserver.Long() {
		n = 20
	}
	var kills []time.Time
	for range n {
		time.Sleep(time.Second)
		kills = append(kills, time.Now())
		if err := a.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = a.Wait()
		a = agent(t, store, path, "--outage", "3s")
		last = append(last, a.line.Worker)
		time.Sleep(4 * time.Second) // the old page has ended
	}
	waits := idle()
	kills = append(kills, time.Now())
	workers, longest := clients.end(t)
	t.Logf("workers of the agents: %v; ids by worker: %v; longest time without an id: %s", last, workers, longest)
	for i, at := range kills[1:] {
		without, change := longestGap(kills[i], at, clients.gaps...)
		scheduler, _ := longestGap(kills[i], at, waits)
		t.Logf("kill %2d: longest time without an id %6.1f ms, at the change to the next page %6.1f ms; a process that only sleeps waited %6.1f ms", i+1,
			without.Seconds()*1000, change.Seconds()*1000, scheduler.Seconds()*1000)
		if change > scheduler+100*time.Millisecond && testserver.Long() {
			t.Errorf("after kill %d a client had no id for %s, and the scheduler took %s", i+1, change, scheduler)
		}
	}
	for _, w := range last {
		if workers[w] == 0 {
			t.Errorf("no client took ids of worker %d", w)
		}
	}
}

// An agent with lanes is killed, and started again with more lanes.
func TestAgentLanes(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(pageDir(t), "page"), filepath.Join(t.TempDir(), "ids.db")
	a := agent(t, store, path, "--lanes", "3", "--outage", "2s")
	for _, lane := range []string{".1", ".2"} {
		openPage(t, path+lane, long)
	}
	clients := startClients(t, path, 6)
	time.Sleep(time.Second)
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.Wait()
	agent(t, store, path, "--lanes", "4", "--outage", "2s")
	time.Sleep(4 * time.Second)
	workers, longest := clients.end(t)
	t.Logf("ids by worker: %v; longest time without an id: %s", workers, longest)
	if len(workers) != 6 {
		t.Errorf("ids of %d workers, want those of three lanes before and after", len(workers))
	}
}

// After an outage of the store that is longer than the budget, ids are back soon after the store. The long form has an outage of 5
// minutes.
func TestAgentOutage(t *testing.T) {
	t.Parallel()
	server := testserver.Postgres(t)
	url := database(t, server, "ids")
	create := command(t, "", "pool", "create", "--new", "--store", url)
	if err := create.Run(); err != nil {
		t.Fatalf("%v: %s", err, create.errs.String())
	}
	path := filepath.Join(pageDir(t), "page")
	a := agent(t, "", path, "--store", url, "--outage", "3s", "--renew", "1s", "--ttl", "2s")
	clients := startClients(t, path, 4)
	time.Sleep(time.Second)
	server.Stop(t)
	p := openPage(t, path, -1)
	var ended *shared.EndedError
	await(t, "the end of ids", func() bool { _, err := p.Next(t.Context()); return errors.As(err, &ended) })
	outage := 3 * time.Second // others may take the worker then
	if testserver.Long() {
		outage = 5 * time.Minute
	}
	time.Sleep(outage)
	server.Start(t)
	back := time.Now()
	await(t, "ids", func() bool { _, err := p.Next(t.Context()); return err == nil })
	took := time.Since(back)
	t.Logf("ids were back %s after the store", took)
	if took > time.Second && testserver.Long() {
		t.Errorf("%s after the store (%s) is more than 1 s: %s", took, back.UTC().Format(time.RFC3339Nano), a.log)
	}
	time.Sleep(500 * time.Millisecond)
	workers, longest := clients.end(t)
	t.Logf("ids by worker: %v; longest time without an id: %s", workers, longest)
	if a.ProcessState != nil {
		t.Errorf("the agent has ended: %s", a.log)
	}
}

// An agent whose store is away at the start waits for it.
func TestAgentWaitsForItsStore(t *testing.T) {
	t.Parallel()
	server := testserver.Etcd(t)
	url := "etcd://" + server.Addr()
	create := command(t, "", "pool", "create", "--new", "--store", url)
	if err := create.Run(); err != nil {
		t.Fatalf("%v: %s", err, create.errs.String())
	}
	server.Stop(t)
	path := filepath.Join(pageDir(t), "page")
	a := newAgentProcess(t, "", path, "--store", url)
	await(t, "a line of the log", func() bool { return strings.Contains(a.log.String(), "trying again") })
	server.Start(t)
	back := time.Now()
	if _, err := openPage(t, path, long).Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the first id came %s after the store", time.Since(back))
	a.stop(t)
}

// firn doctor says whether a page can be served at a path: an old page is in nobody's way, one that an agent serves is fine.
func TestDoctorPage(t *testing.T) {
	t.Parallel()
	dir, store := pageDir(t), filepath.Join(t.TempDir(), "ids.db")
	path := filepath.Join(dir, "page")
	a := agent(t, store, path)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old[16]++ // of the boot id
	if err := errors.Join(os.WriteFile(path+".old", old, 0o600), os.WriteFile(path+".other", []byte("a file of somebody"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, says string
		code       int
	}{
		{path, "ok    page: " + path + ": an agent serves it\n", 0},
		{path + ".new", "ok    page: " + path + ".new: firn agent can serve a page there\n", 0},
		{path + ".old", "ok    page: " + path + ".old: firn agent can serve a page there\n", 0},
		{path + ".other", "bad   page: " + path + ".other: it is another file: use another path, or remove it\n", 3},
		{dir + "/none/page", "bad   page: " + dir + "/none/page: there is no directory " + dir + "/none: mkdir -p " + dir + "/none\n", 3},
		{"/proc/page", "bad   page: /proc/page: its file system is type 0x9fa0: use a path on tmpfs, ext4 or xfs, such as /dev/shm or /run\n", 3},
	} {
		p := command(t, store, "doctor", "--page", c.path)
		out, _ := p.Output()
		if code := p.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("firn doctor --page %s: exit code %d, want %d and %q:\n%s", c.path, code, c.code, c.says, out)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 3 {
		t.Errorf("%v, %v", names, err)
	}
	a.stop(t)
}

// The console of a server shows who holds the worker of a page.
func TestConsoleShowsAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, path := "sqlite:"+filepath.Join(dir, "ids.db"), filepath.Join(pageDir(t), "page")
	a := agent(t, "", path, "--store", store)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s:%d page %s", host, a.Process.Pid, path)
	s := serve(t, dir, "--store", store)
	var text string
	await(t, "the row of "+want, func() bool {
		_, text = s.get("/console/state")
		var now struct {
			Roster struct {
				Workers []struct {
					Worker      int64
					Name, State string
					Ours        bool
				}
			}
		}
		if json.Unmarshal([]byte(text), &now) != nil {
			return false
		}
		for _, w := range now.Roster.Workers {
			if w.Name == want {
				if w.Worker != a.line.Worker || w.State != "held" || w.Ours {
					t.Errorf("%+v", w)
				}
				return true
			}
		}
		return false
	})
	s.stop()
	a.stop(t)
}

// What becomes of an agent whose page was changed by others.
func TestAgentSees(t *testing.T) {
	t.Parallel()
	write := func(path string, at int64, b ...byte) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(b, at)
		return errors.Join(err, f.Close())
	}
	for name, c := range map[string]struct {
		harm  func(path string) error
		says  string
		again bool // the agent makes another page
	}{
		"removed":  {os.Remove, "it was removed", true},
		"runaway":  {func(path string) error { return write(path, 1024+6, 0x7f) }, "ahead of the clock", true},
		"header":   {func(path string) error { return write(path, 80, 99) }, "wrote to its header, so ids may repeat: find that program", false},
		"lowered":  {func(path string) error { return write(path, 1024, make([]byte, 8)...) }, "lowered its word, so ids may repeat", false},
		"replaced": {func(path string) error { return os.WriteFile(path+".new", []byte("x"), 0o600) }, "another program replaced it: end that program, or use another path", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, store := filepath.Join(pageDir(t), "page"), filepath.Join(t.TempDir(), "ids.db")
			a := agent(t, store, path)
			p := openPage(t, path, -1)
			before, err := p.Append(t.Context(), nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond) // the agent has seen the word
			if err := c.harm(path); err != nil {
				t.Fatal(err)
			}
			if name == "replaced" {
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "the log", func() bool { return strings.Contains(a.log.String(), c.says) })
			if !c.again {
				if code := a.code(t); code != 1 {
					t.Errorf("exit code %d: %s", code, a.log)
				}
				return
			}
			var id firn.ID
			await(t, "another page", func() bool {
				id, err = p.Next(t.Context())
				return err == nil && workerOf(t, id) != a.line.Worker || id > before[len(before)-1]
			})
			if id <= before[len(before)-1] {
				t.Errorf("%d after %d", id, before[len(before)-1])
			}
			a.stop(t)
		})
	}
}
