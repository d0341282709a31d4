package sequence

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
)

// Options of a series. Nil, or any zero field, takes the default, which the
// comment names first.
//
// The first group is written down when the series is created, and is the same
// for everybody from then on: whoever opens it may leave these fields out, or
// must agree with what was written. Their names are those of SEQUENCE.
type Options struct {
	First     firn.ID // 1; the first number, and no number is below it (START)
	Max       firn.ID // the largest of 63 bits; no number is above it (MAXVALUE)
	Increment int64   // 1; from one number to the next, positive
	Step      int     // 100; how many numbers a process takes at a time, at least (CACHE). SetStep changes it
	Strict    bool    // order: strict. Numbers increase over all processes: every call waits for a write to the store

	// Lossy: accept. The series goes on on a store that can forget what it
	// acknowledged: then nothing keeps numbers from repeating after it did.
	Lossy bool

	// The others are this process's own.
	Lasts  time.Duration // 10 s; how long a segment is to last: Step grows with demand
	Waste  int           // 100,000; how many numbers a process has in hand at most, besides those that calls wait for or have given up. A crash loses them
	Wait   time.Duration // 5 s; how long a call waits for a store that does not answer
	Name   string        // host:pid; for people
	Logger *slog.Logger  // slog.Default()
}

// defaultWait is how long a call waits where nobody says.
const defaultWait = 5 * time.Second

// maxName is the length of Options.Name at most.
const maxName = 255

// withDefaults returns a copy in which every field of this process is set. Of
// the others, zero may mean what was written down.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Lasts == 0 {
		c.Lasts = block.DefaultCacheFor
	}
	if c.Waste == 0 {
		c.Waste = max(block.DefaultMaxUnused, c.Step)
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	if c.Name == "" {
		c.Name = record.Process()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// An OptionError says which option cannot be, and why. It may be one of several
// in what Open returns.
type OptionError struct {
	Option string // in lower case; "series" is the series' name
	Reason string // begins with the option
}

func (e *OptionError) Error() string { return "sequence: " + e.Reason }

// Retryable is false; see firn.Retryable.
func (*OptionError) Retryable() bool { return false }

// Check returns everything that is wrong with the options and the series' name:
// nil, or [*OptionError]s joined. Open and Create begin with it.
func (o *Options) Check(name string) error {
	c := o.withDefaults()
	return c.validate(name, 1)
}

func (o *Options) validate(name string, stores int) error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, &OptionError{option, option + " " + fmt.Sprintf(format, args...)})
	}
	if reason := record.CheckName("series", name, maxSeries); reason != "" {
		errs = append(errs, &OptionError{"series", reason})
	}
	r := o.record()
	switch {
	case o.First < 0:
		bad("first", "%d: numbers are positive", o.First)
	case o.Max < 0:
		bad("max", "%d: numbers are positive", o.Max)
	case r.Max < r.First:
		bad("max", "%d is below first, %d", o.Max, r.First)
	}
	switch {
	case o.Increment < 0:
		bad("increment", "%d: numbers increase, since they begin at 1 and are never negative", o.Increment)
	case o.Increment > block.MaxIncrement:
		bad("increment", "%d is above %d", o.Increment, block.MaxIncrement)
	}
	if o.Step < 0 || o.Step > block.MaxCache {
		bad("step", "%d: it is 1 to %d", o.Step, block.MaxCache)
	}
	if o.Strict && stores > 1 {
		bad("order", "strict: a series over several stores has no order between them")
	}
	switch {
	case o.Waste < 0 || o.Waste > block.MaxCache:
		bad("waste", "%d: it is 1 to %d", o.Waste, block.MaxCache)
	case o.Step > o.Waste:
		bad("waste", "%d is below step, %d: a process has a whole step in hand", o.Waste, o.Step)
	}
	if o.Lasts < 0 {
		bad("lasts", "%s is negative", o.Lasts)
	}
	if o.Wait < 0 {
		bad("wait", "%s is negative", o.Wait)
	}
	if len(o.Name) > maxName {
		bad("name", "has %d bytes, and %d at most", len(o.Name), maxName)
	}
	return errors.Join(errs...)
}

// maxSeries is the length of a series' name at most.
const maxSeries = 200

// record is a new series' record, but for its id.
func (o *Options) record() block.Record {
	r := block.Record{
		First: int64(o.First), Max: int64(o.Max), Increment: o.Increment, Step: int64(o.Step),
		Strict: o.Strict, Lossy: o.Lossy,
	}
	if r.First == 0 {
		r.First = 1
	}
	if r.Max == 0 {
		r.Max = math.MaxInt64
	}
	if r.Increment == 0 {
		r.Increment = 1
	}
	if r.Step == 0 {
		r.Step = block.DefaultCache
	}
	return r
}

// A MismatchError says that a series was created with another option.
type MismatchError struct {
	Name   string
	Option string
	Have   string // as written down
	Want   string // as asked for
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("sequence: series %q has %s %s, not %s", e.Name, e.Option, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*MismatchError) Retryable() bool { return false }

// agrees returns an error where options that are set differ from the record.
func (o *Options) agrees(name string, r block.Record) error {
	for _, v := range []struct {
		option     string
		have, want int64
	}{
		{"first", r.First, int64(o.First)},
		{"max", r.Max, int64(o.Max)},
		{"increment", max(r.Increment, 1), o.Increment},
	} {
		if v.want != 0 && v.have != v.want {
			return &MismatchError{name, v.option, fmt.Sprint(v.have), fmt.Sprint(v.want)}
		}
	}
	if o.Strict && !r.Strict {
		return &MismatchError{name, "order", "free", "strict"}
	}
	return nil
}
