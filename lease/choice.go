package lease

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// A Choice says which worker a process takes. The zero Choice takes any free one, and
// prefers the one that the process had before under its name. Choices are compared by ==.
type Choice struct {
	kind   term.Choice
	worker int64
	fields [maxWorkerFields]int64 // the worker, as the values of its fields
	count  int                    // of fields; zero: worker is the number
}

// maxWorkerFields is how many fields of a layout can be of the worker: one of its eight is the time.
const maxWorkerFields = 7

// Fresh chooses a worker that no process has ever held, as long as the pool has one. It is
// for pools so large that they last. When none is left, [Open] returns a [*FreshError].
func Fresh() Choice { return Choice{kind: term.Fresh} }

// Only chooses worker n and no other. While another process holds it, [Open] waits for up
// to Options.Wait and then returns a [*FullError]. If the pool does not have worker n, Open
// returns a [*WorkerError].
//
// Several numbers are the values of the layout's worker fields, high bits first: Only(3, 7) is
// datacenter 3, worker 7 in the layout twitter. If the layout has other fields, Open returns an
// [*OptionError].
func Only(n int64, more ...int64) Choice {
	if len(more) == 0 {
		return Choice{kind: term.Insist, worker: n}
	}
	c := Choice{kind: term.Insist, count: 1 + len(more)}
	c.fields[0] = n
	copy(c.fields[1:], more)
	return c
}

// Prefer chooses worker n if it is free, and any other free one if not. It is for processes
// with a number of their own, such as the pods of a StatefulSet. If the pool does not have
// worker n, [Open] returns a [*WorkerError].
func Prefer(n int64) Choice { return Choice{kind: term.Prefer, worker: n} }

// Only returns the worker if the choice was made by the function [Only]. It returns false for a
// worker that was given as the values of its fields: [Choice.In] says which number that is.
func (c Choice) Only() (worker int64, ok bool) {
	return c.worker, c.kind == term.Insist && c.count == 0
}

// In returns the choice with the number of the worker, if it was given as the values of the
// fields that workers of the layout l have. Its error is an [*OptionError].
func (c Choice) In(l firn.Layout) (Choice, error) {
	if c.count == 0 {
		return c, nil
	}
	n, err := l.JoinWorker(c.values()...)
	if err != nil {
		return c, &OptionError{"worker", strings.TrimPrefix(err.Error(), "firn: ")}
	}
	return Choice{kind: c.kind, worker: n}, nil
}

// text is the worker as it was given: 7, or 3/7.
func (c Choice) text() string {
	values := []int64{c.worker}
	if c.count > 0 {
		values = c.values()
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", "/")
}

// values are those of the worker's fields. Too many for any layout are refused by their number.
func (c Choice) values() []int64 {
	values := make([]int64, c.count)
	copy(values, c.fields[:])
	return values
}

// named reports whether the choice names a worker.
func (c Choice) named() bool { return c.kind == term.Insist || c.kind == term.Prefer }
