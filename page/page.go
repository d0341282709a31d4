// Package page lets all processes of a host make ids with one worker, at local speed. One process holds a lease and
// serves a page, which is a file of 4 KB; the others map the file and take ids from it. They may be written in any
// language: docs/reference/page.md has the format, and clients/c/firn.h is a client for C and C++.
//
// The process with the lease, which is the agent:
//
//	ids, err := lease.Open(ctx, st, nil)
//	...
//	defer ids.Close()
//	err = page.Serve(ctx, ids, "/run/firn/shop", nil)
//
// Every other process:
//
//	ids, err := page.Open("/run/firn/shop", nil)
//	...
//	id, err := ids.Next(ctx)
//
// While the agent or its store is away, ids continue for the outage budget of the lease. A process that may write the
// page can break it, so give write access only to processes that you trust: see [Options].
//
// Pages work on Linux, on amd64 and arm64, in file systems of type tmpfs, ext4 and xfs. Elsewhere Serve and Open return
// an [*UnusableError].
package page

import (
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"
)

// Options are the options of [Serve]. Nil, or a zero field, means the default.
type Options struct {
	// Mode has the permissions of the page. Clients need to read and write it. Zero means 0660: the user and the
	// group of the agent.
	Mode fs.FileMode

	// Lanes is how many pages an agent serves at one path, each with a worker and a lease of its own, for a host that
	// needs more ids than one worker can make. Call Serve once for each of them, with Lane 0 to Lanes-1. The page of
	// lane 0 is at the path, and that of lane n at the path with .n after it. Each client takes one lane and keeps to
	// it. At most 64. Zero means one.
	Lanes, Lane int

	// Made is called when a page has got its name, in each term of the lease. It must not block. Nil means that
	// it is not called.
	Made func(worker int64, term uint64)

	// Stats, if not nil, counts what Serve does.
	Stats *Stats

	// Logger receives what an operator has to know. Nil means slog.Default().
	Logger *slog.Logger
}

// Stats counts what one Serve or several do. They may be read at any time.
type Stats struct {
	Pages    atomic.Int64 // pages made
	Renewals atomic.Int64 // how many times the store confirmed that ids continue

	// Taken is how many ids clients have taken. Clients do not count, so Serve reads it from the page every 10 ms.
	// It is exact where fewer ids are taken in 10 ms than a tick has, such as 4,096, and less than
	// the number of ids where more are.
	Taken atomic.Int64
}

// OpenOptions are the options of [Open]. Nil, or a zero field, means the default.
type OpenOptions struct {
	// Wait is how long a call waits for a page that can be used, while the agent is started or started again. Zero
	// means 1 s. A negative one means that calls do not wait.
	Wait time.Duration
}

// A MissingError says that there is no page at the path. Start the agent, or correct the path.
type MissingError struct {
	Path string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("page: there is no page %s; start its agent, or correct the path", e.Path)
}

// A ClosedError says that the agent of a page has ended. Start it again.
type ClosedError struct {
	Path string
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("page: the agent of page %s has ended; start it again: ids resume when it serves the page", e.Path)
}

// An EndedError says that nobody has extended a page in time: its agent, or the store of the agent, is away. Ids
// resume when both are back.
type EndedError struct {
	Path  string
	After time.Duration // how long the page has no ids, by the clock of the page
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("page: page %s has no ids since %s ago: its agent or the store is away; retry, ids resume when both are back", e.Path, e.After.Round(time.Millisecond))
}

// An UnusableError says that a file cannot be a page, or not a page of this process.
type UnusableError struct {
	Path   string
	Why    string // for example: it is a copy
	Served bool   // an agent serves the page
}

func (e *UnusableError) Error() string { return fmt.Sprintf("page: page %s: %s", e.Path, e.Why) }

// Retryable is false; see firn.Retryable.
func (*UnusableError) Retryable() bool { return false }

// A RestartError says that Serve has closed its page, and that nothing is wrong with the path: a page of another lease may
// be served there at once.
type RestartError struct {
	Path string
	Why  string // for example: it was removed
}

func (e *RestartError) Error() string {
	return e.Reason() + "; open another lease and serve that"
}

// Reason is Error without what to do next.
func (e *RestartError) Reason() string { return fmt.Sprintf("page: page %s: %s", e.Path, e.Why) }

// Retryable is true; see firn.Retryable.
func (*RestartError) Retryable() bool { return true }
