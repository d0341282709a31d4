package term

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
)

// An error that says what to do has two texts. Error is for a Go program: what failed, why,
// and what the program, or whoever runs it, does next. Reason leaves the last part out, for
// those who say it in words of their own, as the command does.

// A LayoutError says that the pool has another layout. A pool's never changes.
type LayoutError struct{ Pool, Have, Want string }

func (e *LayoutError) Error() string {
	return e.Reason() + ": leave the layout out of the options to use the pool's, or name a pool of that layout"
}

// Reason is Error without what to do next.
func (e *LayoutError) Reason() string {
	return fmt.Sprintf("lease: pool %q has layout %s, not %s", e.Pool, e.Have, e.Want)
}

// Retryable is false; see firn.Retryable.
func (*LayoutError) Retryable() bool { return false }

// A MissingPoolError says that the store has no pool of that name. It is never created
// by opening it: the store may have lost a pool whose ids are in use.
type MissingPoolError struct {
	Pool     string
	Pools    []string      // that the store has; empty where it was not asked
	Creating bool          // it is being created at this moment, or that was broken off
	Outage   time.Duration // budget of the process that looked for it; zero means 5 min, or not known
}

func (e *MissingPoolError) Error() string {
	ensure := "firn pool ensure " + e.Pool + " --store URL" + LongerOutage(e.Outage, "")
	switch {
	case e.Creating:
		return e.Reason() + "; call again in a minute, and if nobody is creating it, run once: " + ensure
	case len(e.Pools) > 0:
		return e.Reason() + ": set Options.Pool to one of these; if you need another pool that never existed, run once: firn pool create " + e.Pool + " --store URL, which says which workers it can have; if you are not sure: " + ensure
	}
	return e.Reason() + ": if your other programs use another store, open that one; if the pool never existed, run once: firn pool create " + e.Pool + " --store URL; if you are not sure: " + ensure
}

// Reason is Error without what to do next.
func (e *MissingPoolError) Reason() string {
	switch {
	case e.Creating:
		return fmt.Sprintf("lease: pool %q is not created yet: somebody is creating it, or was interrupted", e.Pool)
	case len(e.Pools) > 0:
		return fmt.Sprintf("lease: the store has no pool %q; it has: %s", e.Pool, strings.Join(e.Pools, ", "))
	}
	return fmt.Sprintf("lease: the store has no pool %q", e.Pool)
}

// Recovery says how a store is made safe that has lost what it acknowledged, for a process with an
// outage budget.
func Recovery(err error, outage time.Duration) string {
	return record.Recovery(err, LongerOutage(outage, "; add --numbers N if it has sequences or documents"), LongerOutage(outage, ""))
}

// LongerOutage ends a command that reckons how long earlier processes may issue ids, which is 5 min
// unless the command says more: with the budget that this process has, if that is more, or else with
// a note, to which more may be added.
func LongerOutage(outage time.Duration, more string) string {
	if outage <= OutageDurable {
		return " (add --outage if any process of the pool had an outage budget of more than 5 min" + more + ")"
	}
	flag := outage.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(flag, zero) {
			flag = flag[:len(flag)-2]
		}
	}
	if more != "" {
		more = " (" + strings.TrimPrefix(more, "; ") + ")"
	}
	return " --outage " + flag + more
}

// Retryable is false; see firn.Retryable.
func (*MissingPoolError) Retryable() bool { return false }

// A NotYetError says that the ids of a pool start later than the caller waits: the pool
// was created by Ensure, or its store was recovered. Ids start by themselves.
// A program that should wait for them, and not end and be started again, sets Options.Wait
// to more than the longest outage budget of the pool and 10 s, such as 10 minutes.
//
// Where a lease has its worker already, or another one in place of one that it lost, the error
// says that the worker's first id is late, and Why.
type NotYetError struct {
	Pool     string
	StartsAt time.Time
	Wait     time.Duration // Open waits until StartsAt with an Options.Wait of so much; zero: not known
	Why      string        // whose record the ids start above, where that is further ahead than an outage budget reaches, or why a worker that is held has none yet; empty: an earlier process may have issued ids up to then
	Behind   time.Duration // how far this host's clock is behind the store's; zero: it is not, or the store has no clock
}

func (e *NotYetError) Error() string {
	text := e.Reason() + ": call again at that time"
	if e.Wait > 0 {
		text += fmt.Sprintf(", or set Options.Wait to %s to wait for it", e.Wait)
	}
	return text
}

// Reason is Error without what to do next.
func (e *NotYetError) Reason() string {
	return fmt.Sprintf("lease: the ids of pool %q start at %s, because %s", e.Pool, e.StartsAt.UTC().Format(time.RFC3339),
		cmp.Or(e.Why, "an earlier process may have issued ids up to then")) + Behind(e.Behind)
}

// Retryable is true; see firn.Retryable.
func (*NotYetError) Retryable() bool { return true }

// Behind says how far this host's clock is behind the store's, after what follows from that; "" where it is not.
func Behind(by time.Duration) string {
	if by <= 0 {
		return ""
	}
	return fmt.Sprintf("; this host's clock is %s behind the store's: one of the two is wrong", round(by))
}

// notYet is the error of a pool whose ids start later.
func (s State) notYet(r *Rules, now Now) *NotYetError {
	at := r.start(s.Pool.Floor)
	wait := max(at.Sub(now.Wall), 0).Truncate(10*time.Second) + 10*time.Second
	return &NotYetError{Pool: r.Pool, StartsAt: at, Wait: wait, Why: s.Pool.Ahead, Behind: s.behind(r, now)}
}

// behind is how far this process's clock is behind the store's; zero: no more than clocks may be off.
func (s State) behind(r *Rules, now Now) time.Duration {
	if r.LocalClock || s.read.IsZero() {
		return 0
	}
	if by := s.read.Add(now.Boot).Sub(now.Wall); by > r.Skew {
		return by
	}
	return 0
}

// A WorkerError says that a worker was asked for that the pool does not have.
type WorkerError struct {
	Pool                string
	Layout              firn.Layout // of the pool
	Worker, First, Last int64       // the pool has First to Last
}

func (e *WorkerError) Error() string {
	return e.Reason() + ": choose one of these, or leave out Options.Choice to take any free one"
}

// Reason is Error without what to do next.
func (e *WorkerError) Reason() string {
	return fmt.Sprintf("lease: worker %s is outside pool %q, which has workers %d-%d", e.Layout.NameWorker(e.Worker), e.Pool, e.First, e.Last)
}

// Retryable is false; see firn.Retryable.
func (*WorkerError) Retryable() bool { return false }

// A FullError says that no worker of the pool could be taken. Open with a longer
// Options.Wait to wait for one; "firn worker ls" shows who holds them, and "firn pool set"
// gives a pool more.
type FullError struct {
	Pool    string
	Layout  firn.Layout // of the pool
	Workers int64
	Holders []Holder // by when they fall free; empty in pools too large to list

	// Reserved is the range that the pool had or is to have, "0-63", while its workers are being
	// changed: until that ends, only workers of both ranges are leased. Empty: they are not.
	Reserved string

	Behind time.Duration // how far this host's clock is behind the store's; zero: it is not, or the store has no clock
}

// A Holder is a worker that is not free.
type Holder struct {
	Worker int64
	Name   string        // of whoever holds it; empty: nobody, but its past lies ahead of this clock
	Free   time.Duration // until it falls free
}

func (e *FullError) Error() string {
	more := ""
	if e.Workers > 1 {
		more = `; or give the pool more workers by "firn pool set"`
	}
	return e.Reason() + "; call again later, or set a longer Options.Wait" + more
}

// Reason is Error without what to do next.
func (e *FullError) Reason() string {
	var b strings.Builder
	if e.Workers == 1 { // of the pool, or one was asked for
		fmt.Fprintf(&b, "lease: the one worker of pool %q that this process may take is not free", e.Pool)
	} else {
		fmt.Fprintf(&b, "lease: none of the %d workers of pool %q is free", e.Workers, e.Pool)
	}
	for i, h := range e.Holders {
		if i == 5 {
			fmt.Fprintf(&b, "; and %d more", len(e.Holders)-i)
			break
		}
		switch {
		case h.Name == "":
			fmt.Fprintf(&b, "; worker %s has issued ahead of this clock and falls free in %s", e.Layout.NameWorker(h.Worker), round(h.Free))
		default:
			fmt.Fprintf(&b, "; worker %s is held by %s and falls free in %s if that process died", e.Layout.NameWorker(h.Worker), h.Name, round(h.Free))
		}
	}
	if e.Reserved != "" {
		fmt.Fprintf(&b, "; \"firn pool set\" is changing the workers of the pool: until that ends, it leases only these %d of workers %s", e.Workers, e.Reserved)
	}
	return b.String() + Behind(e.Behind)
}

// Retryable is true; see firn.Retryable.
func (*FullError) Retryable() bool { return true }

func (s State) fullError(r *Rules, now Now, all []candidate) *FullError {
	e := &FullError{Pool: r.Pool, Layout: r.Layout, Workers: s.count, Reserved: s.Pool.Reserved, Behind: s.behind(r, now)}
	if s.count > mostListed {
		return e
	}
	for _, c := range all {
		if c.free == never {
			continue
		}
		h := Holder{Worker: c.worker, Free: c.free}
		if c.rec.Owner != "" && !c.dead {
			h.Name = c.rec.Name
		}
		e.Holders = append(e.Holders, h)
	}
	return e
}

// A ClockError says that this process's clock is ahead of the store's by more than the bound on
// clocks. Where a start is reckoned, one that is behind is an error too.
type ClockError = record.ClockError

// An AwayError says that the store did not answer while a worker was sought. Open again when
// it does.
type AwayError struct {
	Wait time.Duration
	Err  error
}

func (e *AwayError) Error() string {
	if e.SaysWhatToDo() {
		return e.Reason()
	}
	return e.Reason() + "; check that the store runs and that this host reaches it, and call again"
}

// SaysWhatToDo reports whether the store's own error says what to do.
func (e *AwayError) SaysWhatToDo() bool {
	var told interface{ SaysWhatToDo() bool }
	return errors.As(e.Err, &told) && told.SaysWhatToDo()
}

// Reason is Error without what to do next.
func (e *AwayError) Reason() string {
	return fmt.Sprintf("lease: every request to the store failed for %s: %v", e.Wait, e.Err)
}

// Retryable is true; see firn.Retryable.
func (*AwayError) Retryable() bool { return true }

func (e *AwayError) Unwrap() error { return e.Err }

// A LostError says that a worker was lost to somebody else, or may have been. A Lease takes
// another worker by itself; who holds one for another generator stops that, and takes one again.
type LostError struct {
	Worker int64
	Name   string // of who has it now, where that is known
	Late   bool   // its time to live passed before it was extended
	Err    error  // why the record could not be read
}

func (e *LostError) Error() string {
	switch {
	case e.Late:
		return fmt.Sprintf("lease: worker %d was not extended in time", e.Worker)
	case e.Err != nil:
		return fmt.Sprintf("lease: worker %d is lost: %v", e.Worker, e.Err)
	case e.Name == "":
		return fmt.Sprintf("lease: worker %d was taken away", e.Worker)
	}
	return fmt.Sprintf("lease: worker %d was taken by %s", e.Worker, e.Name)
}

// Retryable is true; see firn.Retryable.
func (*LostError) Retryable() bool { return true }

// Why a worker is let go of that was chosen by rules that do not hold.
var (
	errClass = errors.New("another process has found that the store is lossy")
	errReach = errors.New("the store was recovered, and the pool's outage budget is smaller now")
	errRange = errors.New("the pool's range of workers was changed, and does not have it any more")
)

func (e *LostError) Unwrap() error { return e.Err }

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// A FreshError says that every worker of the pool was held once. Open without Fresh, or give
// the pool more workers by "firn pool set".
type FreshError struct {
	Pool    string
	Workers int64
}

func (e *FreshError) Error() string {
	return e.Reason() + `; leave out Options.Choice to take any free one, or give the pool more workers by "firn pool set"`
}

// Reason is Error without what to do next.
func (e *FreshError) Reason() string {
	return fmt.Sprintf("lease: each of the %d workers of pool %q was held before; none is fresh", e.Workers, e.Pool)
}

// Retryable is false; see firn.Retryable.
func (*FreshError) Retryable() bool { return false }
