// Package ledger is what the processes under torture leave behind: the ids that each
// issued, written down so that a kill loses none, and the events that it printed. The
// program in holder writes, package siege reads.
package ledger

import "github.com/firn-id/firn"

// An Event is a line of JSON that the program prints.
type Event struct {
	Event string `json:"event"` // one of the constants below
	Boot  int64  `json:"boot"`  // boot clock, in nanoseconds

	// Of Granted: the record of a worker that the store has acknowledged, or
	// that was found in it after a write of unknown outcome. Prior is the
	// horizon in the record it replaced, or -1 if that was never seen: the
	// process continues with a grant that another process left. Asked is when
	// the process sent the write, by the boot clock.
	Worker  int64     `json:"worker,omitempty"`
	Term    uint64    `json:"term,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Prior   firn.Tick `json:"prior,omitempty"`
	Horizon firn.Tick `json:"horizon,omitempty"`
	Asked   int64     `json:"asked,omitempty"`

	// Of Changed: the lease's state.
	Phase    string `json:"phase,omitempty"`
	Degraded bool   `json:"degraded,omitempty"`
	LeftMS   int64  `json:"left_ms,omitempty"`

	// Of Failed and Refused, and of Changed where there is a reason.
	Hand int    `json:"hand,omitempty"`
	Kind string `json:"kind,omitempty"` // of error: one of the constants below
	Text string `json:"text,omitempty"`
}

// What happened.
const (
	Started = "started" // the program runs and waits for the barrier
	Opened  = "opened"  // it has a lease
	Refused = "refused" // it could not get one
	Granted = "granted" // see Worker
	Changed = "changed" // see Phase
	Failed  = "failed"  // a call for an id fails, and the last one did not, or otherwise
	Fine    = "fine"    // a call succeeds again after some that failed
	Closed  = "closed"  // the lease was given up; Text says what went wrong
	Locked  = "locked"  // the store is locked
)

// Kinds of errors.
const (
	Outage = "outage" // *lease.OutageError, *sequence.OutageError
	Forgot = "forgot" // *store.ForgotError
	Full   = "full"   // *term.FullError or *term.NotYetError: there will be a worker, or ids
	Away   = "away"   // *term.AwayError
	Shut   = "shut"   // firn.ErrClosed
	Spent  = "spent"  // *firn.HorizonError, which is what Try returns
	Ended  = "ended"  // context.Canceled: it was told to close
	Other  = "other"
)
