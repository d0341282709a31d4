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

// Options of a series. Nil, or a zero field, means the default.
type Options struct {
	// First, Max, Increment, Cache and Strict are written down when the series is created,
	// and are the same for every process from then on. [Open] takes what was written; where
	// an option is set, it must agree, but for Cache. The words are those of SEQUENCE.

	// First is the first number; no number is below it (START). Zero means 1.
	First firn.ID
	// Max is the largest number that may be granted (MAXVALUE). Zero means the largest of 63
	// bits.
	Max firn.ID
	// Increment is the distance from one number to the next (INCREMENT). Zero means 1.
	Increment int64
	// Cache is how many numbers a process reserves by one write, at least (CACHE). Zero means
	// 100. It is for a series that is created: [SetCache] changes it later.
	Cache int
	// Strict makes numbers increase over all processes: every call waits for a write to the
	// store.
	Strict bool

	// MayRepeat accepts a store that can lose a write that it acknowledged: after it did,
	// nothing keeps numbers from repeating. [Create] and each process that opens the series
	// has to say so.
	MayRepeat bool

	// New claims that no series of this name ever existed. [Create] needs the claim, or First,
	// on a store that may have lost the series: it was recovered, or pool.Ensure created a pool there.
	New bool

	// The others are this process's own.

	// CacheFor is how long a block of numbers is to last: Cache grows with demand. Zero means
	// 10 s.
	CacheFor time.Duration
	// MaxUnused is how many numbers the process has in hand at most, besides those that calls
	// are waiting for or have given up. That is the most a crash can lose. Zero means
	// 100,000, or Cache where that is more.
	MaxUnused int
	// Wait is how long a call waits for a store that does not answer. Zero means 5 s.
	Wait time.Duration
	// Name is this process's name, for people. Empty means host:pid.
	Name string
	// Logger gets warnings. Nil means slog.Default().
	Logger *slog.Logger
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
	if c.CacheFor == 0 {
		c.CacheFor = block.DefaultCacheFor
	}
	if c.MaxUnused == 0 {
		c.MaxUnused = max(block.DefaultMaxUnused, c.Cache)
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
	if o.Cache < 0 || o.Cache > block.MaxCache {
		bad("cache", "%d: it is 1 to %d", o.Cache, block.MaxCache)
	}
	if o.Strict && stores > 1 {
		bad("order", "strict: a series over several stores has no order between them")
	}
	switch {
	case o.MaxUnused < 0 || o.MaxUnused > block.MaxCache:
		bad("max-unused", "%d: it is 1 to %d", o.MaxUnused, block.MaxCache)
	case o.Cache > o.MaxUnused:
		bad("max-unused", "%d is below cache, %d: a process has a whole cache in hand", o.MaxUnused, o.Cache)
	}
	if o.CacheFor < 0 {
		bad("cache-for", "%s is negative", o.CacheFor)
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
		First: int64(o.First), Max: int64(o.Max), Increment: o.Increment, Step: int64(o.Cache),
		Strict: o.Strict, Lossy: o.MayRepeat,
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
	return e.Reason() + ": leave that out of the options to use the store's, or give other numbers a series of another name"
}

// Reason is Error without what to do next.
func (e *MismatchError) Reason() string {
	return fmt.Sprintf("sequence: series %q has %s %s, not %s", e.Name, e.Option, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*MismatchError) Retryable() bool { return false }

// Agrees returns a [*MismatchError] if [Open] would refuse the options, because the series was
// created with others.
func (o *Options) Agrees(i Info) error {
	return o.agrees(i.Name, block.Record{First: int64(i.First), Max: int64(i.Max), Increment: i.Increment, Strict: i.Strict})
}

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
