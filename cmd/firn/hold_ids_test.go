//go:build !windows

package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
)

// The programs of examples/hold, which carry the generator of other people.
const examples = "../../examples/hold"

// A foreign is a program with a generator of its own.
type foreign struct {
	name    string
	command []string
}

// rate is the program's command line: for ids a second, and how many in all.
func (f *foreign) rate(rate, count int) []string {
	args := append(slices.Clip(f.command), strconv.Itoa(rate))
	if count > 0 {
		args = append(args, strconv.Itoa(count))
	}
	return args
}

// foreigns builds the programs. Where CI runs they have to be there.
func foreigns(t *testing.T) (all []*foreign) {
	t.Helper()
	missing := func(what, install string) {
		t.Helper()
		text := fmt.Sprintf("NOT TESTED: there is no %s to try firn run with (apt-get install %s)", what, install)
		if os.Getenv("FIRN_CI") != "" {
			t.Error(text)
		}
		fmt.Fprintln(os.Stderr, text)
	}
	javac, err := exec.LookPath("javac")
	if err == nil {
		classes := t.TempDir()
		if out, err := exec.Command(javac, "-d", classes, filepath.Join(examples, "Snowflake.java")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// Started quickly, and small.
		all = append(all, &foreign{"java", []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx32m", "-cp", classes, "Snowflake"}})
	} else {
		missing("JDK", "openjdk-17-jdk-headless")
	}
	if _, err := exec.LookPath("node"); err == nil {
		all = append(all, &foreign{"node", []string{"node", filepath.Join(examples, "snowflake.js")}})
	} else {
		missing("Node.js", "nodejs")
	}
	if len(all) == 0 {
		t.Skip("neither a JDK nor Node.js is there")
	}
	return all
}

// printed returns the ids in the outputs. The last line may be half of one.
func printed(t *testing.T, holds []*hold) (ids []int64) {
	t.Helper()
	for _, h := range holds {
		for line := range strings.Lines(read(t, h.out)) {
			text, whole := strings.CutSuffix(line, "\n")
			id, err := strconv.ParseInt(text, 10, 64)
			if whole && err != nil {
				t.Fatalf("%s: %v", h.out, err)
			}
			if whole {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// checkDistinct fails if any two of all printed ids are equal, or there are
// fewer than least.
func checkDistinct(t *testing.T, holds []*hold, least int) {
	t.Helper()
	ids := printed(t, holds)
	slices.Sort(ids)
	repeated := len(ids) - len(slices.Compact(slices.Clone(ids)))
	if repeated > 0 || len(ids) < least {
		t.Errorf("of %d ids %d are repeated; want at least %d and none", len(ids), repeated, least)
	}
	t.Logf("%d ids, none repeated, from %d runs", len(ids), len(holds))
}

// TestHoldIDs runs other people's generators, which know nothing of grants, and
// does to them what may happen to processes and stores: each mishap to one of them,
// and in make full to each.
func TestHoldIDs(t *testing.T) {
	t.Parallel()
	all := foreigns(t)
	// They wait most of the time, so more may run at once than there are cores.
	var runs sync.WaitGroup
	slots := make(chan struct{}, 6)
	run := func(name string, f func(*testing.T)) {
		runs.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, f)
		})
	}
	run("chaos", func(t *testing.T) { holdChaos(t, all) })
	run("together", func(t *testing.T) { holdTogether(t, all) })
	for i, mishap := range mishaps {
		for j, f := range all {
			if !testserver.Long() && j != i%len(all) {
				continue
			}
			run(f.name+"/"+mishap.name, func(t *testing.T) {
				if mishap.needsLinux && runtime.GOOS != "linux" {
					t.Skip("nothing stops a program here when firn cannot")
				}
				holdMishap(t, f, &mishap)
			})
		}
	}
	runs.Wait()
}

// Several at once, as fast as they can.
func holdTogether(t *testing.T, all []*foreign) {
	const count = 20_000
	store := filepath.Join(t.TempDir(), "ids.db")
	var holds []*hold
	for range 2 {
		for _, f := range all {
			holds = append(holds, startHold(t, store, []string{"--layout", "classic", "--json"}, f.rate(0, count)...))
		}
	}
	for _, h := range holds {
		if code := h.code(t); code != 0 {
			t.Errorf("exit code %d\n%s", code, read(t, h.errs))
		}
	}
	checkDistinct(t, holds, count*len(holds))
	awaitFree(t, store)
}

// A mishap is what happens to a program that has the only worker of its pool. The
// next one waits for it meanwhile.
type mishap struct {
	name       string
	happens    func(t *testing.T, store string, h *hold, e holdEvent)
	code       int    // of the first
	says       string // on standard error
	refused    bool   // the next gets no worker
	needsLinux bool
}

var mishaps = []mishap{
	{name: "ended", code: 143, happens: func(t *testing.T, _ string, h *hold, _ holdEvent) {
		h.signal(t, syscall.SIGTERM)
	}},
	{name: "program killed", code: 137, happens: func(t *testing.T, _ string, _ *hold, e holdEvent) {
		kill(t, e.PID, syscall.SIGKILL)
	}},
	{name: "firn killed", code: 137, needsLinux: true, happens: func(t *testing.T, _ string, h *hold, _ holdEvent) {
		h.signal(t, syscall.SIGKILL)
	}},
	{name: "both killed", code: 137, happens: func(t *testing.T, _ string, h *hold, e holdEvent) {
		h.signal(t, syscall.SIGKILL)
		syscall.Kill(e.PID, syscall.SIGKILL) // it may be gone by now
	}},
	{
		name: "program stopped, worker taken away", code: exitStopped, says: `{"error":"%s has to stop: worker 0 was taken`,
		happens: func(t *testing.T, store string, h *hold, e holdEvent) {
			kill(t, e.PID, syscall.SIGSTOP)
			await(t, "the release, which fails where the holder has just written", func() bool {
				return command(t, store, "worker", "release", "0", "--yes").Run() == nil
			})
		},
	},
	{name: "firn stopped", code: 137, needsLinux: true, happens: func(t *testing.T, _ string, h *hold, _ holdEvent) {
		h.signal(t, syscall.SIGSTOP)
	}},
	{name: "all stopped", code: 137, needsLinux: true, happens: func(t *testing.T, _ string, h *hold, e holdEvent) {
		kill(t, -e.PID, syscall.SIGSTOP)
		h.signal(t, syscall.SIGSTOP)
	}},
	{name: "store locked", code: exitStopped, says: `{"error":"%s has to stop: no ids since 20`, happens: lockStore},
	{
		name: "store removed", code: exitStopped, says: `{"error":"%s has to stop: sqlite:`, refused: true,
		happens: func(t *testing.T, store string, _ *hold, _ holdEvent) {
			if err := os.Remove(store); err != nil {
				t.Fatal(err)
			}
		},
	},
}

// lockStore keeps the file locked until the program has ended.
func lockStore(t *testing.T, store string, h *hold, _ holdEvent) {
	db, err := sql.Open("sqlite", store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	await(t, "the lock", func() bool {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err == nil
	})
	h.code(t)
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Error(err)
	}
}

// unhurried are knobs of a pool for programs that need some time to end on a busy machine.
var unhurried = []string{"--outage", "15s", "--renew", "3s", "--ttl", "6s", "--grace", "4s", "--wait", "2m", "--json"}

func holdMishap(t *testing.T, f *foreign, mishap *mishap) {
	store := filepath.Join(t.TempDir(), "ids.db")
	newPoolIn(t, store, "--layout", "classic", "--workers", "0-0")
	flags := append([]string{"--layout", "classic"}, unhurried...)
	first := startHold(t, store, flags, f.rate(5000, 0)...)
	e := first.issues(t)
	next := startHold(t, store, flags, f.rate(5000, 1000)...)

	mishap.happens(t, store, first, e)
	// A program that is told to stop may not come to its end within the grace on a busy machine; then it is killed.
	if code := first.code(t); code != mishap.code && (mishap.code != exitStopped || code != 137) {
		t.Errorf("exit code %d, want %d", code, mishap.code)
	}
	await(t, "the end of the program", func() bool { return gone(e.PID) })
	if want := strings.ReplaceAll(mishap.says, "%s", f.name); !strings.Contains(read(t, first.errs), want) {
		t.Errorf("it does not say %q", want)
	}
	if t.Failed() {
		t.Log(read(t, first.errs))
	}
	syscall.Kill(e.PID, syscall.SIGCONT) // it has to stay dead

	want := 0
	if mishap.refused {
		want = ui.ExitFailed
	}
	if code := next.code(t); code != want {
		t.Errorf("the next: exit code %d, want %d\n%s", code, want, read(t, next.errs))
	}
	if ids := len(printed(t, []*hold{next})); ids == 0 && !mishap.refused {
		t.Error("the next has printed nothing")
	}
	checkDistinct(t, []*hold{first, next}, 1)
	if !mishap.refused {
		awaitFree(t, store)
	}
}

// Processes come and go, by all ways to go, and follow each other on few workers.
func holdChaos(t *testing.T, all []*foreign) {
	const places, workers, lasting, least = 4, 5, 8 * time.Second, 1000
	store := filepath.Join(t.TempDir(), "ids.db")
	newPoolIn(t, store, "--layout", "classic", "--workers", strconv.Itoa(workers))
	flags := append([]string{"--layout", "classic"}, hurried...)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	var holds []*hold
	var running [places]*hold
	for end := time.Now().Add(lasting); time.Now().Before(end) || len(printed(t, holds)) < least; time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) {
		h := &running[random.IntN(places)]
		if *h == nil || (*h).over() {
			*h = startHold(t, store, flags, all[random.IntN(len(all))].rate(2000, 0)...)
			holds = append(holds, *h)
		} else if e, ok := (*h).event(t); ok && strings.Contains(read(t, (*h).out), "\n") {
			strike(t, store, *h, e, random.IntN(9))
		}
	}
	ends := map[int]int{}
	for _, h := range holds {
		if e, ok := h.event(t); ok && !h.over() {
			syscall.Kill(-e.PID, syscall.SIGCONT)
		}
		h.Process.Signal(syscall.SIGCONT)
		h.Process.Signal(syscall.SIGTERM)
	}
	for _, h := range holds {
		ends[h.code(t)]++
	}
	t.Logf("exit codes: %v", ends)
	for code := range ends {
		if !slices.Contains([]int{exitStopped, 130, 137, 143}, code) {
			t.Errorf("exit code %d", code)
		}
	}
	checkDistinct(t, holds, least)
	awaitFree(t, store)
}

// strike does something to a hold that runs.
func strike(t *testing.T, store string, h *hold, e holdEvent, how int) {
	if runtime.GOOS != "linux" && how < 3 {
		return // where that keeps firn from stopping the program, nothing else does
	}
	switch how {
	case 0:
		h.Process.Kill()
	case 1:
		h.Process.Kill()
		syscall.Kill(e.PID, syscall.SIGKILL)
	case 2:
		h.Process.Signal(syscall.SIGSTOP)
	case 3:
		syscall.Kill(e.PID, syscall.SIGKILL)
	case 4:
		syscall.Kill(e.PID, syscall.SIGSTOP)
	case 5:
		h.Process.Signal(syscall.SIGCONT)
		syscall.Kill(e.PID, syscall.SIGCONT)
	case 6:
		h.Process.Signal(syscall.SIGTERM)
	case 7:
		h.Process.Signal(syscall.SIGINT)
	case 8:
		// It fails where the holder has just written.
		command(t, store, "worker", "release", strconv.FormatInt(*e.Worker, 10), "--pool", e.Pool, "--yes").Run()
	}
}
