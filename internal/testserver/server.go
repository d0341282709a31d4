package testserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// A Server is one process of a store, and what it has on disk. Its methods are
// for the goroutine of the test.
type Server struct {
	kind *kind
	plan plan
	addr string
	url  string

	dir     string // ours: record, log, home
	home    string // the server's own
	account *credential
	ports   []int
	process *process // nil: not started by us
	ended   bool     // for good
}

// A plan says how a server of a kind is made.
type plan struct {
	ports   int                      // how many it listens on
	prepare func(s *Server) error    // fills home; nil: it may be empty
	command func(s *Server) []string // called before each start
	url     func(addr string) string // as store/open reads it
	ready   func(addr string) error  // nil once it serves
	// starting is whether the server has noted that it does not serve yet: it spends a process on each answer. nil: it notes nothing.
	starting func(s *Server) bool

	programs *postgres // of PostgreSQL
}

const (
	startTime = 90 * time.Second // on a busy machine
	stopTime  = 30 * time.Second
)

// URL returns the address as store/open reads it.
func (s *Server) URL() string { return s.url }

// Addr returns host:port.
func (s *Server) Addr() string { return s.addr }

// Home returns the directory that the server runs in. A test may put files there
// that the server is to read.
func (s *Server) Home() string { return s.home }

// Log returns what the server has written, over all its starts.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(b)
}

// launch makes and starts a server for a test.
func launch(tb testing.TB, k *kind, p plan) *Server {
	tb.Helper()
	if shared, ok := tb.(*sharedTB); ok {
		if url := os.Getenv(k.env); k.env != "" && url != "" {
			return shared.external(k, url)
		}
	}
	s := create(tb, k, p)
	if err := s.first(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// create makes a server for a test that does not run yet.
func create(tb testing.TB, k *kind, p plan) *Server {
	tb.Helper()
	require(tb, k)
	s := &Server{kind: k, plan: p}
	var err error
	if s.account, err = account(k.accounts); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() && testing.Verbose() {
			tb.Logf("the last of %s's log:\n%s", k.name, s.logTail())
		}
		s.end()
	})
	if err := s.makeDir(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// makeDir makes the directories. The server's account must reach its own, so the
// one above it is open to all.
func (s *Server) makeDir() error {
	in := ""
	if s.kind.inMemory {
		in = place
	}
	var err error
	if s.dir, err = makeDir(in, s.kind.name); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	s.home = filepath.Join(s.dir, "home")
	return nil
}

// first chooses ports and starts the server. Between the choice and the start
// somebody else may have taken one: then others are chosen.
func (s *Server) first() error {
	for try := 1; ; try++ {
		err := s.choosePorts()
		if err == nil {
			err = s.clear()
		}
		if err == nil {
			err = s.start()
		}
		if !errors.Is(err, errTaken) || try == 5 {
			return err
		}
	}
}

// clear makes the server's home, empty but for what it needs to start.
func (s *Server) clear() error {
	forgetMemory(s.home)
	err := errors.Join(os.RemoveAll(s.home), os.Mkdir(s.home, 0o700), give(s.home, s.account))
	if err != nil || s.plan.prepare == nil {
		return err
	}
	return s.plan.prepare(s)
}

// choosePorts chooses and records, one server after the other: of two with one
// port, each would find the other ready.
func (s *Server) choosePorts() error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(cache, "ports.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	s.ports = nil
	for range s.plan.ports {
		port, err := freePort(s.ports)
		if err != nil {
			return err
		}
		s.ports = append(s.ports, port)
	}
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[0]))
	s.url = s.plan.url(s.addr)
	return s.record()
}

var (
	errTaken    = errors.New("testserver: the port is taken")
	errStarting = errors.New("it has noted that it does not serve yet")

	taken = regexp.MustCompile(`(?i)address already in use|address in use`)
	// A postmaster that was killed is waited for by its last children.
	lingering = regexp.MustCompile(`pre-existing shared memory block|another server might be running|lock file .* already exists`)
)

// start starts the process and waits until it serves.
func (s *Server) start() error {
	deadline := time.Now().Add(startTime)
	for {
		before := len(s.Log())
		if err := s.spawn(); err != nil {
			return err
		}
		err := s.waitReady(deadline)
		if err == nil {
			return nil
		}
		said := s.Log()[before:]
		s.process.kill()
		switch {
		case taken.MatchString(said):
			return fmt.Errorf("%w: %s", errTaken, s.addr)
		case !lingering.MatchString(said) || time.Now().After(deadline):
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Server) spawn() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.process, err = spawn(s.plan.command(s), s.home, log, s.account); err != nil {
		return fmt.Errorf("testserver: start %s: %w", s.kind.name, err)
	}
	return s.record()
}

func (s *Server) waitReady(deadline time.Time) error {
	for {
		err := errStarting
		if s.plan.starting == nil || !s.plan.starting(s) {
			err = s.plan.ready(s.addr)
		}
		if err == nil {
			return nil
		}
		if s.process.exited() {
			return fmt.Errorf("testserver: %s did not start, %s\n%s", s.kind.name, s.process, s.logTail())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("testserver: %s is not ready after %s: %w\n%s", s.kind.name, startTime, err, s.logTail())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Start starts a server that was killed or stopped, at the same address, with
// the data it had.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	if !s.process.exited() {
		tb.Fatalf("testserver: %s runs already", s.kind.name)
	}
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends the server with SIGKILL, it and all its processes, and waits until
// they are gone.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.process.kill()
}

// Stop has the server end cleanly, and waits for it.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	if !s.shutDown() {
		tb.Fatalf("testserver: %s did not stop within %s\n%s", s.kind.name, stopTime, s.logTail())
	}
}

func (s *Server) shutDown() bool {
	if s.process.exited() {
		return true
	}
	continueFamily(s.process.identity) // one that is frozen cannot obey
	s.process.signal(s.kind.stop)
	return s.process.wait(stopTime)
}

// Freeze stops the server and all its processes where they are (SIGSTOP):
// connections stay open and nothing answers.
func (s *Server) Freeze(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	if s.process.exited() {
		tb.Fatalf("testserver: %s does not run", s.kind.name)
	}
	if err := stopFamily(s.process.identity); err != nil {
		tb.Fatal(err)
	}
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	continueFamily(s.process.identity)
}

// Wipe has a server that does not run forget all its data, as if its disk had
// been replaced: the next Start begins with an empty one.
func (s *Server) Wipe(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	if !s.process.exited() {
		tb.Fatalf("testserver: %s runs", s.kind.name)
	}
	if err := s.clear(); err != nil {
		tb.Fatal(err)
	}
}

// own skips a test that needs to do with the server what only its owner may.
func (s *Server) own(tb testing.TB) {
	tb.Helper()
	if s.process == nil {
		skip(tb, s.kind, s.kind.env+" names a server that this test may not stop")
	}
}

// end ends the server for good and removes what it has.
func (s *Server) end() {
	if s.ended {
		return
	}
	s.ended = true
	if s.process != nil {
		s.process.kill()
	}
	removeDir(s.dir)
}

func (s *Server) logTail() string {
	log := s.Log()
	return log[max(0, len(log)-4000):]
}
