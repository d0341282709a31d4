package lease

import (
	"cmp"
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

// Options are the options of a lease. Nil options, and the zero Options, are good. All
// processes of a pool should have the same ones; ids are unique where they do not.
type Options struct {
	// Pool is the name of the pool of workers. Empty means "default". Ids that must never
	// be equal come from one pool of one store.
	Pool string

	// Layout is the layout that the caller expects: if the pool has another one, Open
	// refuses. Zero means the pool's, whatever it is. Where Open creates the pool together
	// with its store, the pool gets this layout, or [firn.Default()].
	Layout firn.Layout

	// Shard is the value of the layout's shard field. Zero means shard 0, and is the only
	// one that a layout without such a field has.
	Shard int64

	// Choice says which worker to take. Zero means any free one.
	Choice Choice

	// Lanes is how many workers to hold at once, at most 64. Zero means 1. More are for
	// more ids than one worker can make: calls draw from all of them.
	Lanes int

	// GrantFile is the path of a grant file. Empty means none. A process that was killed,
	// and starts again on the same host before a reboot, continues its old grant from this
	// file, even while the store is away. It does so on Linux; elsewhere it takes a
	// worker as if there were no file. Systems without file locks (aix, solaris, plan9, js,
	// wasip1) refuse a grant file. Further lanes have the files PATH.1, PATH.2 and so on.
	GrantFile string

	// Outage is how long ids continue while the store is away, at least 1 s. Zero means
	// 5 min. On a store that can lose writes it is at most the longest that any process
	// has had while the store could not, or else what the pool was created with, or 3 s:
	// more is no error, and State.Budget says what it is.
	Outage time.Duration

	// Renew is the longest time between two extensions of a lease. Zero means 10 s.
	Renew time.Duration

	// TTL is how long a worker stays with a process that writes nothing; then another
	// process may take it. It is at least twice Renew. Zero means 30 s.
	TTL time.Duration

	// MaxAhead is how far ids may run ahead of the clock, at most 1 s. Zero means 10 ms. A
	// negative one means not at all.
	MaxAhead time.Duration

	// Wait is how long Open waits for a worker to become free, or for its first id. It does not wait
	// for a store that cannot be opened: open.URL returns that error. Zero means 5 s.
	Wait time.Duration

	// NextWait is how long Next and Append wait for ids that are known to start later, after a lost
	// worker was replaced: on a store that can lose writes the new one waits before its first id. If
	// ids start later than that, a call returns a [*NotYetError] at once, also one that waits
	// already. Zero means that calls wait until their context is done. It is not for [Hold].
	NextWait time.Duration

	// Waiting is called when Open has a worker and waits for more than a second until its first id
	// can be issued, as on each start on a store that can lose writes. Why is the reason in words.
	// With several lanes it is called once for each, from several goroutines. It must not block.
	// Nil means that it is not called. The log says the same.
	Waiting func(startsAt time.Time, why string)

	// Grace is how long before the end of its grant a [Worker] says that the program which
	// uses it has to stop: the time that the program needs for that. Only [Hold] uses it. Zero
	// means 3 s, or half of the outage budget where that is less. [MostGrace] is the most: on a
	// store that can lose writes the budget, and so the most, is less than in other stores.
	Grace time.Duration

	// Name says to people which process holds a worker. A process that comes back under a
	// name prefers the worker that it had. Empty means the host's name and the process id,
	// "HOST:PID".
	Name string

	// Logger receives what an operator has to know. Nil means slog.Default().
	Logger *slog.Logger

	foreign bool            // another program issues; see Hold
	clocks  func() term.Now // the system's wall clock and boot clock
	look    time.Duration   // how often the store is asked what it promises
}

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

// An OptionError says which option is wrong, and why. Open may return several, joined.
// Correct the option.
type OptionError struct {
	Option string // its name in lower case; "pool" is the pool's name
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
	choice, err := o.Choice.In(l)
	if w := choice.worker; err == nil && choice.named() && (w < 0 || w >= n) {
		bad("worker", "%d: layout %s has 0 to %d", w, name, n-1)
	}
	if err != nil {
		errs = append(errs, err)
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
	if o.Choice.kind == term.Insist && o.Lanes > 1 {
		bad("lanes", "%d: there is one worker %s", o.Lanes, o.Choice.text())
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
		bad("max-ahead", "%s is above %s", o.MaxAhead, firn.MaxBorrow)
	}
	if len(o.Name) > maxName {
		bad("name", "has %d bytes, and %d at most", len(o.Name), maxName)
	}
	if o.Wait < 0 {
		bad("wait", "%s is negative", o.Wait)
	}
	if o.NextWait < 0 {
		bad("next-wait", "%s is negative", o.NextWait)
	}
	if o.Grace < 0 {
		bad("grace", "%s is negative", o.Grace)
	}
	if outage := cmp.Or(o.Outage, term.OutageDurable); o.Grace > MostGrace(outage) {
		errs = append(errs, longGrace(o.Grace, outage))
	}
	return errs
}

// rules are the pool's rules on a store of such durability.
func (o *Options) rules(p store.Durability) *term.Rules {
	r := term.Default(o.Pool, o.Layout, p)
	r.Choice, r.Worker = o.Choice.kind, o.Choice.worker
	r.Renew, r.TTL, r.Wait, r.Borrow = o.Renew, o.TTL, o.Wait, max(o.MaxAhead, 0)
	r.Outage, r.Look = o.Outage, o.look
	r.Build = buildVersion()
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
