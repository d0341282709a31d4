package sim

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// Options say what to simulate.
type Options struct {
	N      int    // schedules, at least 1
	From   uint64 // seed of the first; 0 is 1
	Mutant string // that is in them; empty: none
	Pools  bool   // in all of them something is done to pools, where there is no mutant
	Like   string // they are drawn and staged as those of this mutant, where there is none; empty: a third of them as those of any
	Done   *atomic.Int64
}

// Run runs schedules on all processors until ctx is done or one fails, and
// returns what they were made of and the failure with the lowest seed, or nil.
// An error says that there is no such mutant.
func Run(ctx context.Context, o Options) (Total, *Failure, error) {
	of, err := schedulesOf(o)
	if err != nil {
		return Total{}, nil, err
	}
	if o.Done == nil {
		o.Done = new(atomic.Int64)
	}
	total, f := simulate(ctx, max(o.From, 1), o.N, of, o.Done)
	return total, f, nil
}

// Replay runs the schedule of one seed and writes down what happens in it. It
// returns what went wrong, or nil.
func Replay(seed uint64, o Options, to io.Writer) (*Failure, error) {
	of, err := schedulesOf(o)
	if err != nil {
		return nil, err
	}
	return replay(seed, of, to), nil
}

// schedulesOf returns how schedules are drawn, and what is in them.
func schedulesOf(o Options) (source, error) {
	switch {
	case o.Mutant != "":
		m, err := mutantOf(o.Mutant)
		if err != nil {
			return nil, err
		}
		return each(m.draw, m), nil
	case o.Like != "":
		m, err := mutantOf(o.Like)
		if err != nil {
			return nil, err
		}
		return each(m.draw, &mutant{scene: m.scene}), nil
	case o.Pools:
		return each(poolSetup, &mutant{}), nil
	}
	return product, nil
}

func mutantOf(name string) (*mutant, error) {
	for _, m := range allMutants() {
		if m.name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("there is no mutant %q", name)
}

// WriteRules writes down every rule and the mutants that break it.
func WriteRules(to io.Writer) error {
	for _, r := range allRules() {
		if _, err := fmt.Fprintln(to, r.says); err != nil {
			return err
		}
		for _, m := range r.mutants {
			if _, err := fmt.Fprintf(to, "    %s\n", m.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write writes down what was simulated, in took.
func (t *Total) Write(to io.Writer, took time.Duration) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(n any, what string) { fmt.Fprintf(out, "%v\t  %s\n", n, what) }
	line(t.Schedules, fmt.Sprintf("schedules in %s, %.0f a second", took.Round(time.Second), float64(t.Schedules)/took.Seconds()))
	line(fmt.Sprintf("%.1f", t.Lasted.Hours()/24), "days of simulated time")
	line(t.IDs, "ids")
	line(t.Numbers, "numbers")
	line(t.Texts, "texts of documents")
	line(t.Grants, "terms of workers that issued")
	line(t.Resumed, "grant files gone on with")
	line(t.Blocks, "blocks of numbers")
	line(t.Steps, "decisions")
	line(t.Requests, "requests to the store")
	line(t.Forgotten, "writes forgotten")
	for i, n := range t.Faults {
		line(n, faultNames[i])
	}
	line(t.Repeats, "repeats")
	return out.Flush()
}
