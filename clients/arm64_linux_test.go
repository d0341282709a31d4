//go:build amd64

package clients_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
)

// arm64 returns two processors. The first has no atomic instructions, so programs use loads and stores that are exclusive. The
// second has them, so programs swap with one instruction.
func arm64(t *testing.T) []*clienttest.Machine {
	t.Helper()
	arm := testserver.NewArm64(t)
	var all []*clienttest.Machine
	for _, cpu := range []string{"cortex-a57", "neoverse-n1"} {
		all = append(all, &clienttest.Machine{
			Name: cpu, GOARCH: "arm64", CC: arm.CC, Root: arm.Root,
			Run: func(program string, args ...string) *exec.Cmd { return arm.Command(t.Context(), cpu, program, args...) },
		})
	}
	return all
}

// slowly leaves time for an emulated processor, which is some ten times as slow.
var slowly = clienttest.Pace{Batch: 500, Singles: 20, Pause: 20 * time.Millisecond}

// TestArm64: programs of arm64 in all languages, under qemu, take ids of one page together with programs of this machine, while
// the page gets other agents. Programs of arm64 refuse a path without a page, and a page of another boot.
func TestArm64(t *testing.T) {
	testserver.OnlyLong(t)
	languages := clienttest.Languages(t)
	var foreign []clienttest.Foreign
	for _, m := range arm64(t) {
		foreign = append(foreign, m.Languages(t)...)
	}
	for _, f := range foreign {
		languages = append(languages, f.Language)
	}
	a := clienttest.Serve(t, clienttest.Brief)
	fleet := clienttest.StartFleet(t, a.Path, len(languages), firn.Default(), slowly, languages)
	fleet.Begun()
	a.Stop()
	a.Start()
	fleet.Pause(6, func() { // these sleep until the old page has ended
		a.Kill()
		a.Start()
		time.Sleep(clienttest.Outage + time.Second)
	})
	time.Sleep(10 * time.Second)
	ids := fleet.End()
	for _, l := range languages {
		t.Logf("%9d ids: %s", ids[l.Name], l.Name)
		if ids[l.Name] < 10_000 {
			t.Errorf("%s: %d ids are few", l.Name, ids[l.Name])
		}
	}
	t.Logf("by worker: %v", fleet.Workers)
	if len(fleet.Workers) < 2 {
		t.Error("no process changed to the page of another worker")
	}
}

// TestArm64Sees: programs of arm64 whose firn.h stores the number instead of swapping it repeat ids. So qemu runs programs at
// once, as processors do.
func TestArm64Sees(t *testing.T) {
	testserver.OnlyLong(t)
	machine := arm64(t)[0]
	from, dir := clienttest.Root(t)+"/clients/c", t.TempDir()
	b, err := os.ReadFile(from + "/firn.h")
	changed := strings.Replace(string(b), "		if (FIRN_SWAP_(firn_number_(p), &word, *last))\n", "		FIRN_STORE_(firn_number_(p), *last);\n", 1)
	if changed == string(b) || err != nil {
		t.Fatal("the swap is not in firn.h: ", err)
	}
	if err := os.WriteFile(dir+"/firn.h", []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	program := clienttest.Compile(t, machine.CC, from+"/testdata/take.c", dir, "-O2", "-Wno-misleading-indentation")
	a := clienttest.Serve(t)
	for round := range 20 { // on a busy host the programs of a round may follow each other
		outs := make([][]byte, 3)
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() {
				out, err := machine.Run(program, "next", a.Path, "200000").Output()
				if err != nil {
					t.Error(err)
				}
				outs[i] = out
			})
		}
		wg.Wait()
		seen, repeats := map[string]bool{}, 0
		for line := range strings.Lines(string(bytes.Join(outs, nil))) {
			id := strings.TrimSpace(line)
			if id != "" && seen[id] {
				repeats++
			}
			seen[id] = true
		}
		if repeats > 0 {
			t.Logf("round %d: %d ids repeat", round, repeats)
			return
		}
	}
	t.Error("no id repeats")
}

// TestArm64Agent: an agent of arm64 serves a page to programs of this machine and of arm64.
func TestArm64Agent(t *testing.T) {
	testserver.OnlyLong(t)
	machine := arm64(t)[1]
	languages := clienttest.Languages(t)
	for _, f := range machine.Languages(t)[:2] { // C and Go
		languages = append(languages, f.Language)
	}
	program := machine.Go(t)
	a := clienttest.Serve(t, clienttest.Brief, clienttest.As(func() *exec.Cmd { return machine.Run(program) }))
	fleet := clienttest.StartFleet(t, a.Path, len(languages), firn.Default(), slowly, languages)
	fleet.Begun()
	a.Stop()
	a.Start()
	time.Sleep(time.Second)
	a.Kill()
	a.Start()
	time.Sleep(clienttest.Outage + 3*time.Second)
	ids := fleet.End()
	t.Logf("ids by language: %v, by worker: %v", ids, fleet.Workers)
	if len(fleet.Workers) < 2 {
		t.Error("no process changed to the page of another worker")
	}
}

// TestArm64Refuses: a program of arm64 says why it has no ids: there is no page, it is of another boot, its agent has ended, or
// its file system cannot have pages.
func TestArm64Refuses(t *testing.T) {
	testserver.OnlyLong(t)
	machine := arm64(t)[0]
	a := clienttest.Serve(t)
	b, err := os.ReadFile(a.Path)
	if err == nil {
		b[16]++
		err = os.WriteFile(a.Path+".boot", b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	languages := machine.Languages(t)
	for _, l := range languages {
		var ids clienttest.IDs
		if n := ids.Run(t, l.Once(a.Path)); n != 1 {
			t.Errorf("%s: %d ids, want 1", l.Name, n)
		}
	}
	a.Stop()
	for _, l := range languages {
		for path, why := range map[string]string{
			a.Path + "x":     "there is no page",
			a.Path + ".boot": "the system was started again since, or it is of another host",
			a.Path:           "has ended; start it again",
			"/proc/version":  "its file system is ",
		} {
			out, _ := l.Once(path).CombinedOutput()
			if text := string(out); !strings.Contains(text, "page "+path) || !strings.Contains(text, why) {
				t.Errorf("%s: %s, want %s", l.Name, text, why)
			}
		}
	}
}
