//go:build amd64 || arm64

package java_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/version"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

func build(t *testing.T) func(args ...string) *exec.Cmd { return clienttest.Java(t) }

// TestTake: single ids, batches and threads take ids of one page, and no id comes twice. Errors say what to do.
func TestTake(t *testing.T) {
	java := build(t)
	agent := clienttest.Serve(t, clienttest.Brief)
	path := agent.Path
	var ids clienttest.IDs
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"next", path, "20000"}, 20000},
		{[]string{"batch", path, "20", "1000"}, 20000},
		{[]string{"batch", path, "1", "20000"}, 20000},
		{[]string{"threads", path, "5000", "8"}, 40000},
	} {
		if n := ids.Run(t, java(append([]string{"Take"}, c.args...)...)); n != c.want {
			t.Errorf("%s: %d ids, want %d", strings.Join(c.args, " "), n, c.want)
		}
	}
	slow := clienttest.Serve(t, clienttest.Slow).Path
	clienttest.Refused(t, java("-Dwait=0", "Take", "batch", slow, "1", "100000"), "BUSY: firn: page "+slow+": the ids of this moment are used up; retry")

	unusable(t, java, path)
	clienttest.Refused(t, java("-Dwait=0", "Take", "next", path+"x", "1"), "NO_PAGE: firn: page "+path+"x: there is no page; start its agent")

	agent.Kill()
	time.Sleep(clienttest.Outage + time.Second)
	clienttest.Refused(t, java("-Dwait=0", "Take", "next", path, "1"), "ENDED: firn: page "+path+": ids ended at 20", "the agent's store is away; retry")
	agent.Start()
	agent.Stop()
	clienttest.Refused(t, java("-Dwait=0", "Take", "next", path, "1"), "CLOSED: firn: page "+path+": its agent has ended; start it again")
	if out, err := java("Take", "interrupt", path).Output(); err != nil || strings.TrimSpace(string(out)) != "CLOSED true" {
		t.Errorf("a thread that is interrupted: %s, %v", out, err)
	}
}

// unusable has one process open what a page must not be: a Java takes long to start.
func unusable(t *testing.T, java func(args ...string) *exec.Cmd, path string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{"Take", "refused"}
	var says []string
	for _, c := range []struct {
		name string
		at   int
		to   byte
		says string
	}{
		{"copy", 4000, 0, "it is a copy; use the original"},
		{"boot", 20, 1, "started again since, or it is of another host; start its agent here"},
		{"time", 33, 1, "another time namespace; run the agent"},
		{"format", 8, 4, "a format that this package does not know: use a newer one"},
		{"header", 128, 0xff, "its header is damaged"},
		{"magic", 0, 1, "it is not a page"},
	} {
		b := bytes.Clone(whole)
		b[c.at] ^= c.to
		if err := os.WriteFile(path+"."+c.name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		refused, says = append(refused, path+"."+c.name), append(says, c.says)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	refused = append(refused, path+".link", "/proc/self/stat")
	says = append(says, "it is not a page", "its file system is proc: use a path on tmpfs, ext4 or xfs, such as /dev/shm")
	out, err := java(refused...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(says) {
		t.Fatalf("%v: %s, want %d lines", err, out, len(says))
	}
	for i, line := range lines {
		if bad := refused[2+i]; !strings.HasPrefix(line, "UNUSABLE: firn: page "+bad+": ") || !strings.Contains(line, says[i]) {
			t.Errorf("%s: %s, want %q", bad, line, says[i])
		}
	}
}

// TestBirth: a copy that has the inode number of its page is refused by its time of birth; and where Java shows the
// time of the last change instead, the page is.
func TestBirth(t *testing.T) {
	java := build(t)
	agent := clienttest.Serve(t)
	library := clienttest.Compile(t, "gcc", "testdata/nobirth.c", ".", "-shared", "-fPIC")
	cmd := java("Take", "next", agent.Path, "1")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
	clienttest.Refused(t, cmd, "UNUSABLE", "use Java 17.0.11 or later")
	agent.Stop()
	b, err := os.ReadFile(agent.Path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(agent.Path, os.O_WRONLY, 0)
	if err == nil {
		b[56] ^= 1 // a nanosecond
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	clienttest.Refused(t, java("Take", "next", agent.Path, "1"), "UNUSABLE", "it is a copy")
}

// TestWaits: more ids than a moment has are not an error while the call may wait.
func TestWaits(t *testing.T) {
	java := build(t)
	agent := clienttest.Serve(t)
	var ids clienttest.IDs
	if n := ids.Run(t, java("Take", "batch", agent.Path, "2", "200000")); n != 400_000 {
		t.Errorf("%d ids, want 400,000", n)
	}
}

// TestAtOnce: processes in Java, Go and C take ids of one page while it gets other agents.
func TestAtOnce(t *testing.T) {
	java := build(t)
	clienttest.Storm(t,
		func(path string) *exec.Cmd { return java("Take", "until", path) },
		func(path string) *exec.Cmd { return java("Take", "until", path, "8") },
	)
}

// TestLanes: a process takes a lane and keeps to it, each lane gets its turn, and a process of a lane that the next
// agent does not have takes one that it has.
func TestLanes(t *testing.T) {
	java := build(t)
	agent := clienttest.Serve(t, clienttest.Lanes(3))
	var all clienttest.IDs
	count := map[int64]int{}
	for range 6 {
		out, err := java("Take", "batch", agent.Path, "3", "50").Output()
		if err != nil {
			t.Fatal(err)
		}
		var one clienttest.IDs
		one.Add(t, "one", string(out))
		all.Add(t, "all", string(out))
		for worker, n := range one.Workers() {
			if n != 150 {
				t.Errorf("%d of 150 ids of a process are of worker %d", n, worker)
			}
			count[worker]++
		}
	}
	if len(count) != 3 || count[0] != 2 || count[1] != 2 || count[2] != 2 {
		t.Errorf("processes by worker: %v", count)
	}
	var ends []func() int
	for range 3 { // one in each lane
		ends = append(ends, all.Start(t, java("Take", "until", agent.Path, "2")))
	}
	for end := time.Now().Add(time.Minute); draws(t, agent.Path) < 9; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("processes do not take lanes")
		}
	}
	time.Sleep(500 * time.Millisecond)
	for _, n := range []int{1, 3} {
		agent.Stop()
		agent.Lanes = n
		agent.Start()
		time.Sleep(time.Second)
	}
	before := all.Count()
	for _, end := range ends {
		end()
	}
	t.Logf("%d ids, by worker: %v", all.Count()-before, all.Workers())
}

// draws is how many lanes were taken of an agent.
func draws(t *testing.T, path string) uint64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[1280:])
}

// TestReplaced: agents follow each other quickly while the page is opened. Java reads the attributes of a path, and not
// those of an open file.
func TestReplaced(t *testing.T) {
	java := build(t)
	path, st := filepath.Join(clienttest.Dir(t), "page"), memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := serve(ctx, st, path); err != nil {
				t.Error(err)
				return
			}
		}
	})
	out, err := java("-Dwait=20000", "Take", "opens", path, "1000").CombinedOutput()
	cancel()
	wg.Wait()
	if err != nil {
		t.Errorf("%v: %s", err, out[max(0, len(out)-500):])
	}
}

// serve serves a page for 20 ms.
func serve(ctx context.Context, st store.Store, path string) error {
	l, err := lease.Open(ctx, st, nil)
	if err != nil {
		return unlessDone(ctx, err)
	}
	over, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	return errors.Join(page.Serve(over, l, path, &page.Options{Logger: slog.New(slog.DiscardHandler)}), l.Close())
}

// unlessDone returns no error if ctx is done.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// TestOtherPool: a client does not change to a page of another pool by itself.
func TestOtherPool(t *testing.T) {
	java := build(t)
	agent, other := clienttest.Serve(t), clienttest.Serve(t)
	cmd := java("-Dwait=3000", "Take", "until", agent.Path)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	agent.Stop()
	if err := os.Rename(other.Path, agent.Path); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(errs.String(), "page of another pool, layout or shard now; open it again") {
		t.Errorf("%v: %s", err, errs.String())
	}
}

// TestReadme runs the sample of the README. The project of Maven has the version of firn.
func TestReadme(t *testing.T) {
	if pom, err := os.ReadFile("pom.xml"); err != nil || !strings.Contains(string(pom), "<version>"+version.Number+"</version>") {
		t.Errorf("pom.xml does not have version %s, %v", version.Number, err)
	}
	java := build(t)
	agent := clienttest.Serve(t)
	dir := java().Dir
	source := filepath.Join(dir, "Example.java")
	if err := os.WriteFile(source, []byte(clienttest.Samples(t, "README.md", "java")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	clienttest.Output(t, dir, "javac", "-cp", "firn.jar", "-d", "programs", source)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", "-cp", "firn.jar:programs", "Example", agent.Path)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), " 1000\n") {
		t.Errorf("%s, %v", out, err)
	}
}
