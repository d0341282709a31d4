package testserver

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"sync"
	"testing"
)

// shared are the servers that the tests of this binary have together.
var shared struct {
	sync.Mutex
	main    bool
	servers map[uintptr]*sharedTB // by the function that starts them
}

// Main runs the tests of a binary, ends the servers that they shared, and exits.
// Each check is called after that, such as goleak's; its error fails the run.
func Main(m *testing.M, checks ...func() error) { os.Exit(Run(m, checks...)) }

// Run is Main for a binary whose tests somebody else begins and ends.
func Run(m interface{ Run() int }, checks ...func() error) (code int) {
	Foreground()
	leave, err := takeSlot()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer leave()
	keepInMemory()
	shared.main = true
	shared.servers = map[uintptr]*sharedTB{}
	code = m.Run()
	for _, s := range shared.servers {
		for i := len(s.cleanups) - 1; i >= 0; i-- {
			s.cleanups[i]()
		}
	}
	for _, check := range checks {
		if err := check(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// Shared returns the server that all tests of this binary share, of a kind such
// as Postgres; the first that asks starts it. It is the one that a variable such
// as FIRN_TEST_POSTGRES_URL names, if that is set: then a test that kills or
// freezes it is skipped.
func Shared(tb testing.TB, start func(testing.TB, ...string) *Server) *Server {
	tb.Helper()
	if !shared.main {
		tb.Fatal("testserver: Shared needs func TestMain(m *testing.M) { testserver.Main(m) }")
	}
	shared.Lock()
	defer shared.Unlock()
	key := reflect.ValueOf(start).Pointer()
	if s := shared.servers[key]; s != nil {
		return s.server
	}
	// The server outlives the test, so what it leaves to a cleanup is kept.
	s := &sharedTB{TB: tb}
	done := false
	defer func() {
		if !done { // skipped or failed: the next one tries again
			for _, f := range s.cleanups {
				f()
			}
		}
	}()
	s.server = start(s)
	done = true
	shared.servers[key] = s
	return s.server
}

// A sharedTB is the test that starts a shared server, but for its end.
type sharedTB struct {
	testing.TB
	server   *Server
	cleanups []func()
}

func (s *sharedTB) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Failed is false, as the test that asked first may have ended when the server does.
func (s *sharedTB) Failed() bool { return false }

// external is a server that runs already.
func (s *sharedTB) external(k *kind, address string) *Server {
	s.Helper()
	u, err := url.Parse(address)
	if err != nil {
		s.Fatalf("testserver: %s is no URL", k.env)
	}
	return &Server{kind: k, addr: u.Host, url: address}
}
