package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
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

// A SourceError says that the source of a series has failed. Whatever this request was
// granted is never given to it later.
//
// Its text is for everybody: it says what kind of trouble it is and since when, and
// nothing of Err, which may have the store's address, its user and what a driver says.
// [Details] has that too, for the log; and [Session.Explain] tells it those who may see it.
type SourceError struct {
	Series string
	Err    error     // the cause
	Since  time.Time // the series has failed since then; zero where only this request has
	Explanation
}

// An Explanation is what is to be said of an error of a source.
type Explanation struct {
	// Again: the same request may do better a moment later.
	Again bool
	// Left is how many values a request would be served that asks for no more: this one asked for
	// more. Zero means that fewer values would not be served either.
	Left int64
	// Trouble is what is wrong, in words that everybody may read: they name no store, no
	// address and no worker, and are not those of a driver.
	Trouble string
	// Hint is what whoever runs the server can do; "" if nothing is to be said.
	Hint string
	// NameOnly: only this name fails. Others of the same source may be served, so there is no time
	// since when there are no ids.
	NameOnly bool
	// Began is when what is wrong began, where that is known: the first failed request may come later.
	// Trouble does not say it. Zero means not known.
	Began time.Time
	// StartsAt is when the first value can be had, where that is known: it is of no use to
	// come again before. Without Again it is when the next date of a document begins that is used up.
	StartsAt time.Time
}

func (e *SourceError) Error() string {
	if e.Since.IsZero() {
		return "series " + e.Series + ": " + e.Trouble
	}
	return "series " + e.Series + ": " + noIDsSince + instant(e.Since) + ": " + e.Trouble
}

// noIDsSince begins what is said of an outage.
const noIDsSince = "no ids since "

func (e *SourceError) Unwrap() error { return e.Err }

// instant is a time as it stands in a message.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hint is what whoever draws can do.
func (e *SourceError) hint() string {
	if errors.As(e.Err, new(*document.FullError)) {
		return "the operator of the server can allow more names"
	}
	if e.Left > 0 {
		return fmt.Sprintf("ask for at most %d", e.Left)
	}
	if e.Again && !e.StartsAt.IsZero() {
		return "retry at " + instant(e.StartsAt) + ": ids start by themselves then"
	}
	if !e.StartsAt.IsZero() {
		return "ask again at " + instant(e.StartsAt) + ": the series continues then"
	}
	if e.Again {
		return "retry: ids resume by themselves when that is over"
	}
	return "the operator of the server has to act: its log says why"
}

// explain says of an error what package firn knows of it.
func explain(err error) Explanation {
	e := Explanation{Again: passes(err), Trouble: "it cannot issue any more"}
	var horizon *firn.HorizonError
	var end *firn.EndError
	var epoch *firn.EpochError
	switch {
	case errors.As(err, &horizon):
		e.Trouble = "the store has granted nothing after " + instant(horizon.Horizon)
	case errors.As(err, &end):
		e.Trouble = "its layout has no room for later ids"
	case errors.As(err, &epoch):
		e.Trouble = "its layout begins later"
	case errors.Is(err, firn.ErrBusy):
		e.Trouble = "there are no more ids for this instant"
	case errors.Is(err, firn.ErrClosed):
		e.Trouble = "the server closes it"
	case e.Again:
		e.Trouble = "there was none in time"
	}
	return e
}

// Details returns the text of an error with its cause, without the name of the package that it
// comes from: for the log, and for those who may see everything. It may have the addresses of
// stores in it.
func Details(err error) string {
	switch e := err.(type) {
	case *SourceError:
		cause := phrase.Reason(e.Err)
		if strings.HasPrefix(cause, noIDsSince) { // as the cause of a lease does, which knows it better
			return "series " + e.Series + ": " + cause
		}
		return e.Error() + ": " + cause
	case *UnreadyError:
		if e.Err == nil {
			return e.Error()
		}
		return e.Error() + ": " + phrase.Reason(e.Err)
	case *unreadySeries:
		return e.names + ": " + Details(e.err)
	case interface{ Unwrap() []error }:
		var all []string
		for _, one := range e.Unwrap() {
			all = append(all, Details(one))
		}
		return strings.Join(all, "\n")
	}
	return phrase.Reason(err)
}

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

// RetryAt returns when it is of use to come again after an error, of a request or of Ready; zero
// where that is not known.
func RetryAt(err error) (at time.Time) {
	switch e := err.(type) {
	case *SourceError:
		return e.StartsAt
	case *UnreadyError:
		return e.StartsAt
	case *unreadySeries:
		return RetryAt(e.err)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if t := RetryAt(one); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// passes reports whether an error passes by itself, as far as its kind says.
func passes(err error) bool {
	var horizon *firn.HorizonError
	return errors.As(err, &horizon) || errors.Is(err, firn.ErrBusy) || errors.Is(err, firn.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Hint returns what whoever asked can do about an error, or "".
func Hint(err error) string {
	var source *SourceError
	var limit *LimitError
	switch {
	case errors.As(err, &source):
		return source.hint()
	case errors.As(err, &limit):
		return limit.hint()
	case errors.Is(err, ErrNoToken), errors.Is(err, ErrToken):
		return "show a token that firn token create printed. The server's firn.yaml has only the hashes of tokens. If the token is lost, make a new one: firn token create NAME"
	case errors.Is(err, ErrDenied):
		return "rights are given in the server's firn.yaml, under tokens"
	case errors.Is(err, ErrNoRange):
		return "ask for n values instead"
	}
	return ""
}
