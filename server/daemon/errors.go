package daemon

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
)

// A SeriesError says which series or pool an error is about that ends the start of a server,
// or a reload. Several are joined.
type SeriesError struct {
	Series *config.Series
	Err    error
}

// Subject is the pool of ids with a time, and the series of all others.
func (e *SeriesError) Subject() string {
	if e.Series.Kind == config.Flake {
		return "pool " + e.Series.Leasing.Pool
	}
	return "series " + e.Series.Name
}

func (e *SeriesError) Error() string {
	text := phrase.Reason(e.Err)
	if strings.HasPrefix(text, e.Subject()+" ") {
		return text
	}
	return e.Subject() + ": " + text
}

func (e *SeriesError) Unwrap() error { return e.Err }

// A MovedError says that a reload leads to a store that lacks what the server draws from in
// another one: its address is mistyped, or the store is empty. What is created there by hand
// would repeat what the server has given.
type MovedError struct {
	Series *config.Series // of the new settings
	Had    string         // the store of the old settings
	Err    error
}

func (e *MovedError) Error() string { return e.Err.Error() }
func (e *MovedError) Unwrap() error { return e.Err }

// A GuardError says that a server would let strangers in, or that servers on other hosts would
// make the same ids.
type GuardError struct {
	Listener string // resp, http or admin
	At       config.Address
	State    bool // strangers could see its state, and not draw
	Store    bool // strangers are kept out, but no store is named
}

func (e *GuardError) Error() string {
	what := fmt.Sprintf("--%s %s: other hosts can come there, and ", e.Listener, e.At)
	switch {
	case e.Store:
		return what + "no --store is given: a server on another host would have a store of its own, and make the same ids"
	case e.State:
		return what + "no token is asked for: anybody could see the state"
	}
	return what + "there are neither tokens nor client certificates: anybody could draw"
}

// A ListenError says that a listener cannot be had, or has failed.
type ListenError struct {
	Listener string // resp, http or admin
	At       config.Address
	Err      error
	Running  bool // it has failed while the server ran
}

func (e *ListenError) Error() string { return fmt.Sprintf("--%s %s: %s", e.Listener, e.At, e.Err) }
func (e *ListenError) Unwrap() error { return e.Err }

// A PoolError says that a pool is named beside those of a file: a server would serve either
// other ids than the file says, or others than the one who set it expects.
type PoolError struct {
	Said config.Value
	Path string
}

func (e *PoolError) Error() string {
	return fmt.Sprintf("%s is set to %s, and %s names pools: firn serve takes the pool of each series from there", e.Said.From, e.Said.Text, e.Path)
}

// An UnusedError says that a series of texts was created while the server waited for it, and
// has given nothing yet. Whoever has lost one creates it again and then raises it, and what it
// gave in between would be given twice.
type UnusedError struct{ Series string }

func (e *UnusedError) Error() string {
	return fmt.Sprintf("the document %s is there now, and has given nothing yet", e.Series)
}

// Retryable is false; see firn.Retryable.
func (*UnusedError) Retryable() bool { return false }

// A waitsError says that the server waits until the ids of a pool start.
type waitsError struct{ early *lease.NotYetError }

// awaited returns an error as the server says it, which waits where ids start later.
func awaited(err error) error {
	if err == nil {
		return nil // without a variable on the heap for each call
	}
	var early *lease.NotYetError
	if errors.As(err, &early) {
		return &waitsError{early}
	}
	return err
}

func (e *waitsError) Error() string { return phrase.Reason(e.early) + "; the server waits for that" }
func (e *waitsError) Unwrap() error { return e.early }

// lacks reports whether a store lacks the pool or the counter that an error is about.
func lacks(err error) bool {
	var pool *lease.MissingPoolError
	return errors.As(err, &pool) && !pool.Creating || isA[*sequence.MissingError](err) || isA[*document.MissingError](err)
}

// wrong says what is wrong with the settings of a server, and what to write instead.
func wrongSettings(text string, advice ...string) error {
	return &config.Error{Err: errors.New(text), Advice: advice}
}

// Somebody has to do something first; see firn.Retryable.
func (*SeriesError) Retryable() bool { return false }
func (*MovedError) Retryable() bool  { return false }
func (*GuardError) Retryable() bool  { return false }
func (*PoolError) Retryable() bool   { return false }
