package lease

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// Options of a lease. Nil, or any zero field, takes the default, which the
// comment names first. All members of a pool should agree on them; ids are
// unique where they do not.
type Options struct {
	// Pool is the name of the pool of workers. Empty means "default". Ids that must never
	// be equal come from one pool of one store.
	Pool string

	// Layout is the layout that the caller expects: if the pool has another one, Open
	// refuses. Zero means the pool's, whatever it is. Where Open creates the pool together
	// with its store, the pool gets this layout, or [firn.Default()].
	Layout firn.Layout

	Shard int64 // 0; the value of the layout's shard field

	Choice Choice // Recycle; which worker to take
	Worker int64  // the one that Insist and Prefer mean; one that the pool does not have is a [*WorkerError]

	// File is the path of a grant file; none. A process that was killed and
	// starts again on the same host and boot then goes on inside its own old
	// grant, whether the store is there or not; on Linux, and elsewhere anew. On a
	// system without file locks (aix, solaris, plan9, js, wasip1) a file is refused.
	// Further lanes have files of their own, PATH.1 and so on.
	GrantFile string

	Lanes int // 1, at most 64; how many workers to hold and draw from: for more ids than one worker's ceiling

	// Outage is how long ids go on while the store is away, at least 1 s. Zero means
	// 5 min. On a store that can lose writes it is at most the longest that any process
	// has had while the store could not, or else what the pool was created with, or 3 s:
	// more is no error, and State.Budget says what it is.
	Outage time.Duration

	Renew    time.Duration // 10 s: between two extensions, at most
	TTL      time.Duration // 30 s: a worker whose holder has not written for so long may be taken; at least 2 Renew
	MaxAhead time.Duration // 10 ms: how far ids may run ahead of the clock, at most 1 s; negative: not at all
	Wait     time.Duration // 5 s: for a worker to fall free, or for its past to pass

	Name   string       // host:pid; for people. A process that comes back under a name prefers the worker it had
	Logger *slog.Logger // slog.Default()

	foreign bool            // another program issues; see Hold
	clocks  func() term.Now // the system's wall clock and boot clock
	look    time.Duration   // how often the store is asked what it promises
}

// A Choice says which worker a process takes; see [term.Choice].
type Choice = term.Choice

// Choices of a worker.
const (
	Recycle = term.Recycle // any free one
	Fresh   = term.Fresh   // one that nobody ever had: for pools so large that they last
	Insist  = term.Insist  // Options.Worker or none
	Prefer  = term.Prefer  // Options.Worker if it is free, else any other of the pool: a StatefulSet's ordinal
)

// withDefaults returns a copy in which every field is set.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Pool == "" {
		c.Pool = pool.Default
	}
	if c.Lanes == 0 {
		c.Lanes = 1
	}
	if c.Renew == 0 {
		c.Renew = term.Renew
	}
	if c.TTL == 0 {
		c.TTL = term.TTL
	}
	if c.MaxAhead == 0 {
		c.MaxAhead = firn.DefaultBorrow
	}
	if c.Wait == 0 {
		c.Wait = term.Wait
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.clocks == nil {
		c.clocks = clocks
	}
	if c.look == 0 {
		c.look = term.Look
	}
	return c
}

// An OptionError says which option cannot be, and why. It may be one of several
// in what Open returns.
type OptionError struct {
	Option string // in lower case; "pool" is the pool's name
	Reason string // begins with the option
}

func (e *OptionError) Error() string { return "lease: " + e.Reason }

// Retryable is false; see firn.Retryable.
func (*OptionError) Retryable() bool { return false }

// Check returns everything that is wrong with the options, as far as that does not depend
// on the pool: nil, or [*OptionError]s joined. Open begins with it. With a layout, it
// checks them against that too.
func (o *Options) Check() error {
	c := o.withDefaults()
	errs := c.faults()
	if c.Layout.IsValid() {
		errs = append(errs, c.misfits(c.Layout)...)
	}
	return errors.Join(errs...)
}

// misfits returns which options cannot be in a layout.
func (o *Options) misfits(l firn.Layout) (errs []error) {
	bad := func(option, format string, args ...any) {
		errs = append(errs, &OptionError{option, option + " " + fmt.Sprintf(format, args...)})
	}
	name := layoutName(l)
	switch n := l.Shards(); {
	case n == 1 && o.Shard != 0:
		bad("shard", "%d: layout %s has no shard field", o.Shard, name)
	case o.Shard < 0 || o.Shard >= n:
		bad("shard", "%d: layout %s has 0 to %d", o.Shard, name, n-1)
	}
	n := l.Workers()
	if named := o.Choice == Insist || o.Choice == Prefer; named && (o.Worker < 0 || o.Worker >= n) {
		bad("worker", "%d: layout %s has 0 to %d", o.Worker, name, n-1)
	}
	if most := min(maxLanes, n); int64(o.Lanes) > most {
		bad("lanes", "%d: layout %s has at most %d", o.Lanes, name, most)
	}
	return errs
}

// faults returns which options cannot be in any layout.
func (o *Options) faults() (errs []error) {
	bad := func(option, format string, args ...any) {
		errs = append(errs, &OptionError{option, option + " " + fmt.Sprintf(format, args...)})
	}
	if wrong := term.CheckName(o.Pool); wrong != "" {
		errs = append(errs, &OptionError{"pool", wrong})
	}
	if o.Choice == Insist && o.Lanes > 1 {
		bad("lanes", "%d: there is one worker %d", o.Lanes, o.Worker)
	}
	if o.Lanes < 1 || o.Lanes > maxLanes {
		bad("lanes", "%d: there can be 1 to %d", o.Lanes, maxLanes)
	}
	if o.Outage != 0 && o.Outage < time.Second {
		bad("outage", "%s is under 1s", o.Outage)
	}
	if o.Renew < 0 || o.TTL < 2*o.Renew {
		bad("ttl", "%s is under twice renew, %s", o.TTL, o.Renew)
	}
	if o.MaxAhead > firn.MaxBorrow {
		bad("borrow", "%s is above %s", o.MaxAhead, firn.MaxBorrow)
	}
	if len(o.Name) > maxName {
		bad("name", "has %d bytes, and %d at most", len(o.Name), maxName)
	}
	if o.Wait < 0 {
		bad("wait", "%s is negative", o.Wait)
	}
	return errs
}

// rules are the pool's rules on a store with such a promise.
func (o *Options) rules(p store.Durability) *term.Rules {
	r := term.Default(o.Pool, o.Layout, p)
	r.Choice, r.Worker = o.Choice, o.Worker
	r.Renew, r.TTL, r.Wait, r.Borrow = o.Renew, o.TTL, o.Wait, max(o.MaxAhead, 0)
	r.Outage, r.Look = o.Outage, o.look
	return &r
}

// maxLanes is far above what a process can use: a lane makes millions of ids per
// second.
const maxLanes = 64

// maxName is the length of Options.Name at most.
const maxName = 255

// layoutName is a layout's name as a preset, or else its spec.
func layoutName(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}

func seed() (b [32]byte) {
	rand.Read(b[:])
	return b
}
