package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// Errors besides [*NameError], [*NoSeriesError], [*LimitError] and [*SourceError].
var (
	// ErrNoToken: the server has tokens, and the session was entered without one.
	ErrNoToken = errors.New("server: a token is needed")
	// ErrToken: there is no such token, or not any more.
	ErrToken = errors.New("server: the token is not known")
	// ErrDenied: the session's token has not the right.
	ErrDenied = errors.New("server: the token has no right to that")
	// ErrNoRange: the numbers of the series do not come in ranges.
	ErrNoRange = errors.New("server: the series has no ranges")
	// ErrStopping: the server is about to end.
	ErrStopping = errors.New("server: stopping")
)

// A NameError says that no series can have a name.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("server: series %.100q: a name has up to 64 of A-Z, a-z, 0-9, '_', '.', '-', ':', and begins with a letter or digit", e.Name)
}

// A NoSeriesError says that there is no series of that name.
type NoSeriesError struct {
	Name    string
	Nearest string // that the session may use, and was probably meant; "" if none
}

func (e *NoSeriesError) Error() string {
	text := "server: there is no series " + e.Name
	if e.Nearest != "" {
		text += "; is it " + e.Nearest + "?"
	}
	return text
}

// A LimitError says that a request asks for more than one may, or for nothing.
type LimitError struct {
	What  string // of which there is a limit
	Asked int64
	Max   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("server: %s %d: 1 to %d at a time", e.What, e.Asked, e.Max)
}

// hint says how to stay within the limit.
func (e *LimitError) hint() string {
	if e.Asked < 1 {
		return "ask for one at least"
	}
	return "ask for fewer at a time"
}

// A SourceError is what a series' source said. Whatever it had granted is used up,
// and never given to anybody else.
type SourceError struct {
	Series string
	Err    error
	Again  bool   // the same request may do better a moment later
	Hint   string // what a person can do; "" if nothing is to be said
}

func (e *SourceError) Error() string { return "series " + e.Series + ": " + e.Err.Error() }

func (e *SourceError) Unwrap() error { return e.Err }

// Retry reports whether the same request may do better a moment later, here or at
// another server of the same series: the store is away, the grant is used up, the
// server is about to end. All other errors stay until somebody changes something.
func Retry(err error) bool {
	var source *SourceError
	if errors.As(err, &source) {
		return source.Again
	}
	return errors.Is(err, ErrStopping) || passes(err)
}

// passes reports whether an error passes by itself, as far as its kind says.
func passes(err error) bool {
	var horizon *firn.HorizonError
	return errors.As(err, &horizon) || errors.Is(err, firn.ErrBusy) || errors.Is(err, firn.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Hint returns what a person can do about an error, or "".
func Hint(err error) string {
	var source *SourceError
	var limit *LimitError
	switch {
	case errors.As(err, &source):
		return source.Hint
	case errors.As(err, &limit):
		return limit.hint()
	case errors.Is(err, ErrNoToken), errors.Is(err, ErrToken):
		return "the tokens of this server are in its firn.yaml, under tokens"
	case errors.Is(err, ErrDenied):
		return "rights are given in the server's firn.yaml, under tokens"
	case errors.Is(err, ErrNoRange):
		return "ask for n values instead"
	}
	return ""
}
