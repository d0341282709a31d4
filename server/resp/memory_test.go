//go:build linux

package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
	"github.com/firn-id/firn/store/memory"
)

// roleEnv makes the test binary a server, so that its memory is its own.
const roleEnv = "FIRN_TEST_RESP_SERVER"

func init() {
	if os.Getenv(roleEnv) == "" {
		return
	}
	if err := beServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beServer() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin) // it ends with the test
		cancel()
	}()
	ids, err := lease.Open(ctx, memory.New(), nil)
	if err != nil {
		return err
	}
	srv, err := server.New(nil, server.Numbers("photo", ids, nil), server.Numbers("fast", &upward{}, nil))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return resp.Serve(ctx, l, srv, &resp.Options{MaxConns: 20_000})
}

// child starts a server in a process of its own.
func child(t *testing.T) (*world, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &world{addr: strings.TrimSpace(addr)}, cmd.Process.Pid
}

// resident returns what a process has in memory, in MB: now, and at most so far.
func resident(t *testing.T, pid int) (now, most int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) int {
		_, rest, _ := strings.Cut(string(b), name+":")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return n / 1024
	}
	return read("VmRSS"), read("VmHWM")
}

// Thousands of connections that do nothing, and some that do much, have room in
// little memory.
func TestIdleMemory(t *testing.T) {
	const each = 16 << 10 // that an idle connection may cost
	idle := 10_000
	if raceDetector {
		idle = 1000
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	idle = min(idle, int(limit.Cur)-200)
	w, pid := child(t)
	base, _ := resident(t, pid)
	conns := make([]net.Conn, idle)
	for i := range conns {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "PING\r\n")
		conns[i] = c
	}
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c, make([]byte, len("+PONG\r\n"))); err != nil {
			t.Fatal(err)
		}
	}
	quiet, _ := resident(t, pid)
	var busy sync.WaitGroup
	for range 50 {
		p := dial(t, w)
		busy.Go(func() {
			pipeline := strings.Repeat(array("INCR", "photo"), 128)
			for range 40 {
				io.WriteString(p.Conn, pipeline)
				for range 128 {
					if got, err := readAnswer(p.r); err != nil || got[0] != ':' {
						t.Error(got, err)
						return
					}
				}
			}
		})
	}
	busy.Wait()
	_, most := resident(t, pid)
	t.Logf("%d idle connections: %d MB at first, %d MB with them, %d MB at most with 50 busy ones", idle, base, quiet, most)
	if bound := base + idle*each>>20 + 40; most > bound && !raceDetector {
		t.Errorf("%d MB, more than %d", most, bound)
	}
	for i, c := range conns { // they are all still there
		if i%100 == 0 {
			io.WriteString(c, "PING\r\n")
			if _, err := io.ReadFull(c, make([]byte, len("+PONG\r\n"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A pipeline of a million commands, and connections that ask for much and read
// nothing: there is a bound.
func TestPipelineMemory(t *testing.T) {
	w, pid := child(t)
	p := dial(t, w)
	million := 1_000_000
	if raceDetector {
		million /= 5
	}
	pipeline := strings.Repeat(array("INCR", "photo"), million)
	if _, err := io.WriteString(p.Conn, pipeline); err != nil {
		t.Fatal(err)
	}
	for range million {
		if line, err := p.r.ReadSlice('\n'); err != nil || line[0] != ':' {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_, most := resident(t, pid)
	t.Logf("a million commands before an answer is read: %d MB at most", most)
	if most > 120 && !raceDetector {
		t.Errorf("%d MB", most)
	}

	for range 8 { // each asks for 250 MB
		io.WriteString(dial(t, w).Conn, strings.Repeat(array("FIRN.NEXT", "fast", "10000"), 1000))
	}
	// Until no more is kept, or on a slow machine for as long as a test may take.
	end := time.Now().Add(5 * time.Second)
	for same := 0; same < 100 && time.Now().Before(end); same++ {
		before := most
		if _, most = resident(t, pid); most != before || most < 100 { // what may be kept at least
			same = 0
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got := dial(t, w).do("PING"); got != "+PONG" {
		t.Error(got)
	}
	t.Logf("8 that ask for 250 MB each and read nothing: %d MB at most", most)
	if most > 400 && !raceDetector {
		t.Errorf("%d MB", most)
	}
}
