package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// judge says what is to be said of an error of the series.
func (d *outlet) judge(err error) server.Explanation {
	return server.Explanation{
		Again: passes(err), Left: leftOf(err), Trouble: troubleOf(err), Hint: d.hintOf(err), NameOnly: isA[*newNameError](err), Began: beganOf(err), StartsAt: nextOf(err),
	}
}

// beganOf is when a series that is not open yet began to be opened; zero for all other errors.
func beganOf(err error) time.Time {
	var opening *notOpenError
	if errors.As(err, &opening) {
		return opening.since
	}
	return time.Time{}
}

// leftOf returns how many numbers a call that asks for fewer would be served; 0: none.
func leftOf(err error) int64 {
	var numbers *sequence.EndError
	var texts *document.EndError
	var away *sequence.OutageError
	switch {
	case errors.As(err, &numbers):
		return numbers.Left
	case errors.As(err, &texts):
		return texts.Left
	case errors.As(err, &away):
		return away.Left
	}
	return 0
}

// asksForLess reports whether a call for fewer numbers would be served.
func asksForLess(err error) bool { return leftOf(err) > 0 }

// troubleOf says what is wrong in words that everybody may read: whoever draws ids is told
// no store, no address, no other process, and nothing that a driver says.
func troubleOf(err error) string {
	var opening *notOpenError
	switch {
	case errors.Is(err, errOpening):
		return "the server is still starting"
	case errors.As(err, &opening):
		return "still starting: " + troubleOf(opening.err)
	}
	for _, t := range troubles {
		if t.is(err) {
			return t.text
		}
	}
	if at := startOf(err); !at.IsZero() {
		return "ids of its pool start at " + at.UTC().Format(time.RFC3339)
	}
	var ended *lease.OutageError
	if errors.As(err, &ended) && !ended.EndedAt.IsZero() {
		return "the store does not answer, and has granted ids until " + ended.EndedAt.UTC().Format(time.RFC3339)
	}
	if passes(err) {
		return "the store does not answer"
	}
	return "it does not continue without an operator"
}

// nextOf is when values can be had again after an error; zero where that is not known.
func nextOf(err error) time.Time {
	var used *document.EndError
	if errors.As(err, &used) {
		return used.NextAt
	}
	return startOf(err)
}

// startOf is when the ids of a pool start that has none yet; zero where that is not why.
func startOf(err error) time.Time {
	var later *lease.NotYetError
	if errors.As(err, &later) {
		return later.StartsAt
	}
	return time.Time{}
}

// troubles are kinds of errors and what everybody may know of them, the surest first: an
// outage may have any of the others for its cause.
var troubles = []struct {
	is   func(error) bool
	text string
}{
	{isA[*store.ForgotError], "the store has forgotten what it acknowledged"},
	{isA[*document.InstanceError], "the store may have forgotten its last numbers"},
	{isA[*lease.MissingPoolError], "its pool does not exist"},
	{isA[*store.OtherStoreError], "its store is a copy of another one"},
	{isA[*lease.LayoutError], "its pool has another layout"},
	{isA[*lease.WorkerError], "its pool does not have its worker"},
	{isA[*lease.FreshError], "no worker of its pool is fresh"},
	{isA[*lease.ClockError], "the clock of the server is wrong"},
	{isA[*document.ClockError], "the clock of the store is wrong"},
	{isA[*firn.EndError], "its layout has no room for later ids"},
	{isA[*firn.EpochError], "its layout begins later"},
	{func(err error) bool { return asksForLess(err) && passes(err) }, "the store does not answer, and fewer numbers are in hand than were asked for"},
	{asksForLess, "it has fewer numbers left than were asked for"},
	{isA[*sequence.EndError], "it has given all its numbers"},
	{isA[*document.EndError], "its pattern has no room for more numbers"},
	{isA[*document.FullError], "its template has as many names as it may have"},
	{isA[*sequence.MissingError], "the store has no counter for it"},
	{isA[*document.MissingError], "the store has no counter for it"},
	{isA[*sequence.LossyError], "the store can lose what it acknowledged"},
	{isA[*document.LossyError], "the store can lose what it acknowledged"},
	{isA[*sequence.MismatchError], "the store has it with other settings"},
	{isA[*document.DefinitionError], "the store has it with other settings"},
	{isA[*countername.KindError], "the store has a counter of another kind by its name"},
	{isA[*countername.LostNameError], "the store may have lost a counter of that name"},
	{isA[*newNameError], "the name is new to this server, which has to ask the store once whether a counter has it, and the store does not answer"},
	{isA[*newCounterError], "a counter of that name is new, and the server has not opened it yet"},
	{isA[*fromurl.URLError], "the server's settings name no store"},
	{isA[*lease.FullError], "all workers of its pool are held"},
	{isA[*lease.MissingPoolError], "its pool does not exist"},
	{isA[*lease.WorkerError], "its pool does not have the worker that is configured"},
	{isA[*store.OtherStoreError], "the store is not the one that its pool was made in"},
	{isA[*sequence.OutageError], "the store does not answer, and no numbers are in hand"},
	{func(err error) bool { return errors.Is(err, firn.ErrClosed) }, "the server closes it"},
	{func(err error) bool { return errors.Is(err, errNoWorker) }, "no worker is held just now"},
	{func(err error) bool { return errors.Is(err, context.Canceled) }, "the request was given up"},
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
