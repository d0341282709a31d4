//go:build linux

package siege

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Outcome is what came of a siege.
type Outcome struct {
	Store     string         `json:"store"`
	Seed      uint64         `json:"seed"`
	Command   string         `json:"command"` // has the same faults again
	Begun     time.Time      `json:"begun"`
	Lasted    time.Duration  `json:"lasted_ns"`
	Processes int            `json:"processes"`
	Workers   int64          `json:"workers"`
	Terms     int64          `json:"terms"`
	IDs       int64          `json:"ids"`
	Numbers   int64          `json:"numbers"` // of the series
	Harms     map[string]int `json:"faults"`  // how often each was done
	Typed     map[string]int `json:"typed"`   // how often a command was, after a loss
	Pairs     Pairs          `json:"pairs"`
	Repeats   int64          `json:"repeats"`
	Problems  []string       `json:"problems"`        // the first of them; every repeat is one
	Stays     []string       `json:"stays,omitempty"` // records in a store that was given

	Survived time.Duration       `json:"longest_outage_without_a_failed_call_ns"` // of the store
	Longest  time.Duration       `json:"longest_outage_ns"`
	Beyond   int                 `json:"outages_beyond_the_budget"` // calls failed, and succeeded again
	Recovery map[string]Recovery `json:"recovery"`                  // by fault; "several" are faults that overlapped
	Order    Order               `json:"order"`
	Agreed   Order               `json:"order_where_clocks_agreed"` // of processes whose clocks were never off

	mu sync.Mutex
}

// A Recovery is how long it took, each time, from the end of a fault until everybody for
// whom there is a worker issued again, and had a grant that was extended since.
type Recovery struct {
	Times  int           `json:"times"`
	Median time.Duration `json:"median_ns"`
	Worst  time.Duration `json:"worst_ns"`

	all []time.Duration
}

// Several names the recovery from faults that overlapped.
const Several = "several at once"

func newOutcome(o Options) *Outcome {
	return &Outcome{
		Store: o.target().name, Seed: o.Seed, Command: o.Command(o.Store), Begun: time.Now().UTC().Truncate(time.Second),
		Harms: map[string]int{}, Typed: map[string]int{}, Pairs: Pairs{NotMet: []string{}}, Problems: []string{}, Recovery: map[string]Recovery{},
	}
}

// did counts a fault.
func (o *Outcome) did(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Harms[what]++
}

// faults is how many there were.
func (o *Outcome) faults() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.Harms {
		n += k
	}
	return n
}

// types counts what an operator typed, without its flags.
func (o *Outcome) types(lines []string) {
	for _, line := range lines {
		command, _, _ := strings.Cut(strings.TrimPrefix(line, stopAll), " -")
		command, _, _ = strings.Cut(command, " /")
		o.Typed[command]++
	}
}

// problem notes what should not be.
func (o *Outcome) problem(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.Problems) < maxProblems {
		o.Problems = append(o.Problems, fmt.Sprintf(format, args...))
	}
}

// bad reports whether something should not be.
func (o *Outcome) bad() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.Problems) > 0
}

// recovered notes how long it took after a fault.
func (o *Outcome) recovered(from string, took time.Duration) {
	r := o.Recovery[from]
	r.all = append(r.all, took)
	r.summarize()
	o.Recovery[from] = r
}

func (r *Recovery) summarize() {
	slices.Sort(r.all)
	r.Times, r.Median, r.Worst = len(r.all), r.all[len(r.all)/2], r.all[len(r.all)-1]
}

// Together sums up the outcomes of stores that were besieged with the same options. The
// median of order errors is left out.
func Together(options Options, all []*Outcome) *Outcome {
	sum := newOutcome(options)
	sum.Store = "together"
	var stores []string
	for _, o := range all {
		stores = append(stores, o.Store)
		sum.Command, sum.Begun = options.Command(stores...), all[0].Begun
		sum.Lasted += o.Lasted
		sum.Processes += o.Processes
		sum.Workers += o.Workers
		sum.Terms += o.Terms
		sum.IDs += o.IDs
		sum.Numbers += o.Numbers
		sum.Repeats += o.Repeats
		sum.Beyond += o.Beyond
		sum.Survived, sum.Longest = max(sum.Survived, o.Survived), max(sum.Longest, o.Longest)
		sum.Order.add(o.Order)
		sum.Agreed.add(o.Agreed)
		sum.Pairs.add(o.Store, o.Pairs)
		if n := len(o.Problems); n > 0 {
			sum.problem("%s: %s", o.Store, o.Problems[0])
		}
		for what, n := range o.Harms {
			sum.Harms[what] += n
		}
		for what, n := range o.Typed {
			sum.Typed[what] += n
		}
		for from, r := range o.Recovery {
			s := sum.Recovery[from]
			s.all = append(s.all, r.all...)
			s.summarize()
			sum.Recovery[from] = s
		}
	}
	return sum
}
