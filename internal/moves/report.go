package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// An outcome is what came of one run.
type outcome struct {
	verdict
	Acknowledged int64
	Hops         int64                        // transactions that were tried again
	Pause        time.Duration                // as the mover measured it
	Gap          time.Duration                // the worst gap from the beginning of the move on
	Gaps         map[move.Phase]time.Duration // the worst gap in each phase
	Over         time.Duration                // the worst of those in which the shard changed over
	Move         time.Duration                // all of it
	Harm         string                       // the run's own
	Struck       []string                     // the harms that were done, in order
	Typed        []string                     // the commands of hints that were followed
	Promoted     string                       // the server whose standby took its place
	Parted       bool                         // the old copy has another schema than the shard
	Problems     []string
	said         []Said // when which phase began
}

func (o *outcome) problem(format string, args ...any) {
	o.Problems = append(o.Problems, fmt.Sprintf(format, args...))
}

// A report is a table of runs, a line as soon as each has ended.
type report struct {
	out    io.Writer
	faults bool
	all    []outcome
	bad    int64

	skipped []string // harms that cannot be done here, and why
}

const (
	head = "%4s %8s %8s %7s %6s %6s %6s %9s %9s %9s %9s %9s %9s %11s %6s\n"
	line = "%4s %8d %8d %7d %6d %6d %6d %9d %9d %9s %9s %9s %9s %11s %6d\n"
)

func (r *report) begin(set settings) {
	fmt.Fprintf(r.out, "%d writers, each %g transactions a second; %d rows, the target's clock %s behind, seed %d\n", set.writers, set.rate, set.rows, set.behind, set.seed)
	fmt.Fprintf(r.out, head, "RUN", "ROWS", "ACKED", "RETRIED", "LOST", "WRONG", "EXTRA", "REPEATED", "UNORDERED", "PAUSE", "GAP", "CUTOVER", "BEFORE", "MOVE", "HARMS")
}

func (r *report) add(o outcome) {
	r.all = append(r.all, o)
	r.bad += o.bad() + int64(len(o.Problems))
	r.line(fmt.Sprint(len(r.all)), o)
	if len(o.Struck) > 0 {
		fmt.Fprintln(r.out, "     done to it:", strings.Join(o.Struck, ", "))
	}
	if len(o.Typed) > 0 {
		fmt.Fprintln(r.out, "     typed:", strings.Join(o.Typed, "; "))
	}
	for _, p := range o.Problems {
		fmt.Fprintln(r.out, "     PROBLEM", p)
	}
}

func (r *report) line(name string, o outcome) {
	fmt.Fprintf(r.out, line, name, o.Rows, o.Acknowledged, o.Hops, o.Lost, o.Wrong, o.Extra, o.Repeated, o.Unordered,
		milliseconds(o.Pause), milliseconds(o.Gap), milliseconds(o.Over), milliseconds(o.Gaps[before]), milliseconds(o.Move), len(o.Struck))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// end prints sums of what is counted, and medians of what is measured.
func (r *report) end() {
	if len(r.all) == 0 {
		return
	}
	var sum outcome
	for _, o := range r.all {
		sum.Rows += o.Rows
		sum.Acknowledged += o.Acknowledged
		sum.Hops += o.Hops
		sum.Lost += o.Lost
		sum.Wrong += o.Wrong
		sum.Extra += o.Extra
		sum.Repeated += o.Repeated
		sum.Unordered += o.Unordered
		sum.Struck = append(sum.Struck, o.Struck...)
	}
	sum.Pause = median(r.all, func(o outcome) time.Duration { return o.Pause })
	sum.Gap = median(r.all, func(o outcome) time.Duration { return o.Gap })
	sum.Over = median(r.all, func(o outcome) time.Duration { return o.Over })
	sum.Move = median(r.all, func(o outcome) time.Duration { return o.Move })
	sum.Gaps = make(map[move.Phase]time.Duration)
	for _, p := range phases {
		sum.Gaps[p] = median(r.all, func(o outcome) time.Duration { return o.Gaps[p] })
	}
	r.line("all", sum)
	fmt.Fprintf(r.out, "%d runs; times are medians: the pause of the shard; the worst gap that any writer saw while it\nmoved, of those the worst when it changed over, and the worst before it moved\n", len(r.all))
	fmt.Fprint(r.out, "the worst gap by the phase that most of it was in:")
	for _, p := range phases {
		fmt.Fprintf(r.out, " %s %s,", p, milliseconds(sum.Gaps[p]))
	}
	fmt.Fprintln(r.out, " each a median")
	if r.faults {
		for _, h := range harms {
			fmt.Fprintf(r.out, "%3d times: %s\n", count(sum.Struck, h.name), h.name)
		}
		for _, s := range r.skipped {
			fmt.Fprintln(r.out, "skipped:", s)
		}
		fmt.Fprintln(r.out, "with faults: pauses and gaps are those of processes that were killed, and compare with nothing")
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// median is the middle of what runs measured.
func median[T cmp.Ordered](all []outcome, of func(outcome) T) T {
	values := make([]T, len(all))
	for i, o := range all {
		values[i] = of(o)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
