package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// Options say what to simulate.
type Options struct {
	N     int    // schedules, at least 1
	From  uint64 // seed of the first; 0 is 1
	Wrong string // what the store or an operator does wrong in them; empty: nothing
	Pools bool   // in all of them something is done to pools
	Like  string // all are in the situation of this name; empty: a third of them are in any
	Done  *atomic.Int64
}

// Run runs schedules on all processors until ctx is done or one fails, and
// returns what they were made of and the failure with the lowest seed, or nil.
// An error says that there is no such name.
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

// schedulesOf returns how schedules are drawn.
func schedulesOf(o Options) (source, error) {
	switch {
	case o.Wrong != "":
		for _, d := range wrongs {
			if d.name == o.Wrong {
				return each(d.draw), nil
			}
		}
		return nil, fmt.Errorf("nobody does wrong %q", o.Wrong)
	case o.Like != "":
		for _, d := range draws {
			if d.name == o.Like {
				return each(d.draw), nil
			}
		}
		return nil, fmt.Errorf("there is no situation %q", o.Like)
	case o.Pools:
		return each(poolSetup), nil
	}
	return product, nil
}

// WriteNames writes down the situations, and what the store or an operator can do wrong.
func WriteNames(to io.Writer) error {
	var b strings.Builder
	for _, d := range draws {
		fmt.Fprintf(&b, "like   %s\n", d.name)
	}
	for _, d := range wrongs {
		fmt.Fprintf(&b, "wrong  %s\n", d.name)
	}
	_, err := io.WriteString(to, b.String())
	return err
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
	line(t.Cloned, "ids of a cloned process that its clone issued too, as it may")
	line(t.Repeats, "repeats")
	return out.Flush()
}
