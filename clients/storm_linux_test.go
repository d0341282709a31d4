//go:build amd64 || arm64

package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/siege"
)

// What the long storm is made of.
const (
	stormIDs       = 1_000_000_000
	stormProcesses = 64
	stormLayout    = "time:41@1ms,worker:5,seq:17;epoch=2025-01-01T00:00:00Z"
	stormBudget    = 10 * time.Second // of an outage
)

// TestStormLong: processes in all languages take 10^9 ids of one page, of firn agent with its lease in PostgreSQL. Meanwhile the
// agent is killed, stopped and started, its clock steps, its store is cut off, and processes are stopped, killed and replaced.
func TestStormLong(t *testing.T) {
	testserver.OnlyLong(t)
	languages := clienttest.Languages(t)
	server := testserver.Postgres(t)
	w := &storm{t: t, store: testserver.NewProxy(t, server.Addr()), firn: siege.Command(t), done: map[string]int{}, began: time.Now()}
	w.url = strings.Replace(server.URL(), server.Addr(), w.store.Addr(), 1)
	w.path = filepath.Join(clienttest.Dir(t), "page")
	w.clock = siege.NewClock(t, filepath.Join(t.TempDir(), "clock"))
	w.log = filepath.Join(t.TempDir(), "agent.log")
	if out, err := w.command("pool", "create", "--new", "--layout", stormLayout).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.start()
	t.Cleanup(w.kill)
	w.fleet = clienttest.StartFleet(t, w.path, stormProcesses, firn.MustLayout(stormLayout), clienttest.Pace{Batch: 1000, Singles: 100, Pause: 8 * time.Millisecond}, languages)
	w.fleet.Begun()
	for round := 0; round < 2 || w.fleet.Total() < stormIDs; round++ {
		w.round(round)
		if t.Failed() || time.Since(w.began) > 20*time.Minute {
			break
		}
	}
	ids := w.fleet.End()
	t.Logf("%d ids in %s, by language: %v, by worker: %v", w.fleet.Total(), time.Since(w.began).Round(time.Second), ids, w.fleet.Workers)
	t.Logf("harms: %v; %d processes stopped and continued, %d killed and replaced", w.done, w.fleet.Paused, w.fleet.Replaced)
	if n := w.fleet.Total(); n < stormIDs {
		t.Errorf("%d ids, want %d", n, int64(stormIDs))
	}
	if t.Failed() {
		log, _ := os.ReadFile(w.log)
		t.Logf("the agents:\n%s", log)
	}
}

// A storm has an agent that can be harmed, and clients.
type storm struct {
	t     *testing.T
	store *testserver.Proxy
	firn  string // the command, with a clock that steps
	url   string
	path  string // of the page
	log   string // of all agents
	clock *siege.Clock
	fleet *clienttest.Fleet
	done  map[string]int
	began time.Time

	agent *exec.Cmd
	ended chan error // of the agent
}

// round makes each harm once. A worker of an agent that was killed falls free in less than two of the longest waits.
func (w *storm) round(n int) {
	step := []time.Duration{time.Second, 4 * time.Second, time.Minute, time.Hour}[n%4]
	w.harm("agent killed", func() { w.kill(); w.start() })
	w.harm("clients stopped, agent killed", func() {
		w.fleet.Pause(8, func() { w.kill(); w.start(); time.Sleep(stormBudget + 2*time.Second) })
	})
	w.harm("store cut off, within the budget", func() { w.away(w.refuse, 3*time.Second) })
	w.harm("clients killed", func() { w.fleet.Replace(8) })
	w.harm("clock forward", func() { w.step(step) })
	w.harm("store hangs, within the budget", func() { w.away(w.store.Hang, 4*time.Second) })
	w.harm("agent stopped (SIGTERM)", func() { w.stop(); time.Sleep(200 * time.Millisecond); w.start() })
	w.harm("clock back", func() { w.step(-step) })
	w.harm("clients stopped", func() { w.fleet.Pause(16, func() { time.Sleep(3 * time.Second) }) })
	w.harm("agent paused", func() { w.pause(3 * time.Second) })
	if n%2 == 0 {
		w.harm("store cut off, longer than the budget", func() { w.away(w.refuse, stormBudget+5*time.Second) })
	} else {
		w.harm("agent paused, longer than the budget", func() { w.pause(stormBudget + 2*time.Second) })
	}
}

// harm does one thing, and lets the clients continue for a moment.
func (w *storm) harm(name string, do func()) {
	if w.t.Failed() {
		return
	}
	w.t.Logf("%6.1f s, %10d ids: %s", time.Since(w.began).Seconds(), w.fleet.Total(), name)
	do()
	w.done[name]++
	time.Sleep(500 * time.Millisecond)
	for before, end := w.fleet.Total(), time.Now().Add(time.Minute); w.fleet.Total() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Errorf("nobody has ids after %s", name)
			return
		}
	}
}

func (w *storm) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.firn, append(args, "--store", w.url)...)
	cmd.Env = append(os.Environ(), w.clock.Variable())
	return cmd
}

// start starts an agent, and waits for its page.
func (w *storm) start() {
	before, _ := os.Stat(w.path)
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.agent = w.command("agent", w.path, "--outage", stormBudget.String(), "--renew", "1s", "--ttl", "3s")
	w.agent.Stderr = log
	if err := w.agent.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	w.ended = ended
	go func(agent *exec.Cmd) { ended <- agent.Wait() }(w.agent)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if now, err := os.Stat(w.path); err == nil && (before == nil || !os.SameFile(before, now)) {
			return
		}
		if time.Now().After(end) || len(ended) > 0 {
			w.t.Errorf("the agent makes no page")
			return
		}
	}
}

// kill kills the agent (SIGKILL). The test fails if it has ended by itself.
func (w *storm) kill() {
	if len(w.ended) > 0 {
		w.t.Error("the agent has ended by itself")
	}
	_ = w.agent.Process.Kill()
	w.ended <- <-w.ended // it stays known
}

// stop ends the agent as an operator does.
func (w *storm) stop() {
	_ = w.agent.Process.Signal(syscall.SIGTERM)
	err := <-w.ended
	if err != nil {
		w.t.Errorf("the agent, after SIGTERM: %v", err)
	}
	w.ended <- err
}

// pause stops the agent (SIGSTOP), and continues it.
func (w *storm) pause(d time.Duration) {
	_ = w.agent.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = w.agent.Process.Signal(syscall.SIGCONT)
}

// away makes the store unreachable.
func (w *storm) away(how func(bool), d time.Duration) {
	how(true)
	time.Sleep(d)
	how(false)
}

// refuse cuts all connections of the store, and refuses new ones.
func (w *storm) refuse(refuse bool) {
	w.store.Refuse(refuse)
	w.store.Cut()
}

// step steps the agent's clock, and back.
func (w *storm) step(by time.Duration) {
	w.clock.Set(by)
	time.Sleep(2 * time.Second)
	if by.Abs() <= 4*time.Second { // also a new agent has that clock; clients would wait for one that is far behind
		w.kill()
		w.start()
		time.Sleep(time.Second)
	}
	w.clock.Set(0)
}
