// Package sim is a deterministic simulation that looks for repeated ids and
// numbers. The real code of internal/term, internal/holder, internal/block, internal/supply,
// internal/dated and the generator runs under clocks that step, drift and stand still, on a store that delays,
// loses, forgets, is restored and is made anew, in processes that are paused, killed,
// started again and go on with a grant file. One goroutine at a time runs in a schedule;
// a seed says everything of it.
//
//	go run ./internal/sim/run -n 100000     # schedules from seed 1 on
//	go run ./internal/sim/run -seed 4711    # one of them, and what happened
//
// A world is one schedule. In it:
//
//   - hosts have clocks, and processes read them;
//   - a process has a holder, in which the loop of internal/holder runs as it does in
//     package lease, a drawer, which calls for numbers of a series by the code that package
//     sequence runs, a clerk, which gives out the texts of documents by that of package
//     document, or several of these;
//   - a network loses and delays what they ask of the one store;
//   - faults strike, and an operator repairs what they leave;
//   - a checker sees every write and every id, and judges the whole history.
//
// Schedules are drawn from all there is (setup.go), and a third of them from the
// situations of draws.go, in which a rule that is missing shows soon. Package mutants
// takes each rule out of firn's own files and looks for it here. What the store or an
// operator can do wrong, against which firn has no rule, is in wrong.go: the checker has
// to see that.
package sim

import (
	"fmt"
	"strings"
)

// A flaw is a kind of thing that must not happen.
type flaw int

const (
	repeated  flaw = iota // an id or a number was issued twice
	outside               // an id is not in what the store has written down for its owner
	overlap               // two terms of a worker have ticks in common
	order                 // ids of one generator do not increase
	stamp                 // an id's time is further ahead of the clock than allowed
	reach                 // a horizon is further ahead than a restore counts on
	starved               // a process has no ids or numbers, and could
	unnoticed             // a process read that the store lost a record which it knows, and did not stop
	misstep               // anything else that a machine, an operator or a store must not do
)

var flaws = [...]string{
	"repeated", "outside of its grant", "terms overlap", "out of order", "time out of bounds",
	"reaches too far", "starved", "not noticed", "misstep",
}

func (f flaw) String() string { return flaws[f] }

// A Failure is a schedule in which something went wrong.
type Failure struct {
	Seed  uint64
	Wrong string // what the store or an operator does wrong; empty: nothing
	What  string
	flaw  flaw
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s: %s", f.Seed, f.flaw, f.What)
}

// Command is what to type to see the schedule.
func (f *Failure) Command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "go run ./internal/sim/run -seed %d", f.Seed)
	if f.Wrong != "" {
		fmt.Fprintf(&b, " -wrong %q", f.Wrong)
	}
	return b.String()
}
