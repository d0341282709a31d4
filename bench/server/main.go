// Command server compares firn's servers with others: over the protocol of Redis with
// redis-server, over HTTP with a handler that does nothing else, a client that
// prefetches with a counter in the process.
//
// Servers are processes of their own, held to one processor, and clients to another.
// All take turns, round by round, so that whatever else the machine does meets all of
// them. What is compared is the processor time of a request, which says how many one
// processor can answer even while others use it; the ratios are medians of those
// within a round. It runs on Linux.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/firn-id/firn/bench/figures"
)

// A contender is something that is compared.
type contender struct {
	group string
	name  string
	peer  bool // the others of the group are compared with it
	past  bool // it is firn as another checkout builds it, and firn's of the same name is compared with it
	run   func() (figures.Sample, error)
}

// groups make what is compared, on a stage that starts its servers. Each has a file.
var groups = []func(*stage) ([]contender, error){
	overRESP,
	overHTTP,
	overClient,
}

// programs are what it needs besides Go, and the packages of Debian that have them.
var programs = map[string]string{"redis-server": "redis-server", "redis-benchmark": "redis-tools", "taskset": "util-linux", "wrk": "wrk"}

// roles are the servers that this program can be itself, by the name that -role has.
// One listens on a free port of the loopback interface, says its address in a line of
// standard output, and goes on until it is ended.
var roles = map[string]func() error{
	"http": serveHTTP, "http-bare": serveBareHTTP, "http-limits": serveLimitedHTTP,
	"client": serveClient,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 9, "how often everything is run")
	only := flag.String("only", "", "compare only groups and names that match this regular expression, and what they are compared with")
	before := flag.String("before", "", "directory of another checkout of firn: compare with its servers too")
	asJSON := flag.Bool("json", false, "print JSON")
	role := flag.String("role", "", "be one of the servers that are compared")
	flag.Parse()
	if *role != "" {
		be := roles[*role]
		if be == nil {
			return fmt.Errorf("there is no role %q", *role)
		}
		return be()
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if flag.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("usage: server [-rounds N] [-only REGEXP] [-before DIR] [-json]")
	}
	for name, pkg := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w; on Debian: apt-get install %s", err, pkg)
		}
	}
	s := &stage{interrupted: make(chan os.Signal, 1), before: *before}
	signal.Notify(s.interrupted, os.Interrupt, syscall.SIGTERM)
	defer s.clear()
	var all []contender
	for _, make := range groups {
		some, err := make(s)
		if err != nil {
			return err
		}
		for _, c := range some {
			if c.peer || match.MatchString(c.group+" "+c.name) {
				all = append(all, c)
			}
		}
	}
	all = withoutLonePeers(all)
	r := report{Machine: figures.ThisMachine(), Rounds: *rounds}
	if r.Rows, err = s.compare(all, *rounds); err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.print(os.Stdout)
}

// withoutLonePeers leaves out the peers of groups in which nothing else is compared.
func withoutLonePeers(all []contender) []contender {
	others := map[string]bool{}
	for _, c := range all {
		if !c.peer {
			others[c.group] = true
		}
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !others[c.group] })
}
