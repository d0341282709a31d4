package firn

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// WorkerFields ranges over the layout's fields that make up a worker, high bits first: their
// names, and their values in worker n. In the layout classic worker 37 is datacenter 1 and
// worker 5.
func (l Layout) WorkerFields(n int64) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		below := l.workerBits()
		for _, f := range l.fields[:l.count] {
			if !f.IsWorker() {
				continue
			}
			below -= f.Width
			if !yield(f.Name, n>>below&f.Max()) {
				return
			}
		}
	}
}

// WorkerText writes worker n as people read it: as the values of its fields, such as 1/5 for
// worker 37 of the layout classic. Where the layout has one worker field, or none, and where it
// has no worker n, that is the number n.
func (l Layout) WorkerText(n int64) string {
	var values []string
	for _, v := range l.WorkerFields(n) {
		values = append(values, strconv.FormatInt(v, 10))
	}
	if len(values) < 2 || n < 0 || n >= l.Workers() {
		return strconv.FormatInt(n, 10)
	}
	return strings.Join(values, "/")
}

// NameWorker names worker n to people: by its number, and by the values of its fields where there
// are several, such as 37 (1/5).
func (l Layout) NameWorker(n int64) string {
	number, text := strconv.FormatInt(n, 10), l.WorkerText(n)
	if text == number {
		return number
	}
	return number + " (" + text + ")"
}

// JoinWorker returns the number of the worker whose fields have these values, high bits first:
// JoinWorker(1, 5) is 37 in the layout classic. One value is the number itself. It returns an
// error if the layout has another number of worker fields, or if a value does not fit.
func (l Layout) JoinWorker(values ...int64) (int64, error) {
	var fields []Field
	var names []string
	for _, f := range l.fields[:l.count] {
		if f.IsWorker() {
			fields, names = append(fields, f), append(names, f.Name)
		}
	}
	if len(values) == 1 {
		fields = []Field{{Name: "worker", Width: l.workerBits()}}
	}
	switch {
	case !l.IsValid():
		return 0, errZeroLayout
	case len(fields) == len(values):
	case len(fields) < 2:
		return 0, fmt.Errorf("firn: worker %s: a worker of layout %s is one number, 0 to %d", slashed(values), l.label(), l.Workers()-1)
	default:
		return 0, fmt.Errorf("firn: worker %s: a worker of layout %s is %s", slashed(values), l.label(), strings.Join(names, "/"))
	}
	var n int64
	for i, f := range fields {
		v := values[i]
		switch {
		case v >= 0 && v <= f.Max():
		case len(values) == 1:
			return 0, fmt.Errorf("firn: worker %d: layout %s has 0 to %d", v, l.label(), f.Max())
		default:
			return 0, fmt.Errorf("firn: worker %s: the %s of layout %s is 0 to %d, not %d", slashed(values), f.Name, l.label(), f.Max(), v)
		}
		n = n<<f.Width | v
	}
	return n, nil
}

// slashed writes the values of a worker's fields: 1/5.
func slashed(values []int64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strconv.FormatInt(v, 10)
	}
	return strings.Join(texts, "/")
}
