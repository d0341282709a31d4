package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
)

// shorterOutage says what to do about an outage budget that is longer than the pool's limit.
func shorterOutage(l *config.Leasing, limit time.Duration) string {
	return fmt.Sprintf("set %s to %s or less: a pool never gets a longer outage than it was created with", remedy.Setting(l.From, "outage"), phrase.Duration(limit))
}

// explain adds to an error of a lease what can be done about it.
func explainLease(l *config.Leasing, err error) error {
	var f *ui.Failure
	var option *lease.OptionError
	var outage *cause.LongOutageError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &outage):
		return ui.Bad("%w", l.Faults(outage.Err)).Hint("%s", shorterOutage(l, outage.Limit))
	case errors.As(err, &option):
		return l.Faults(err)
	}
	if f := poolFailure(err, poolPlace{url: whichstore.Text(l.URL), from: l.From, shard: l.Options.Shard, file: l.File, serves: l.Serves}); f != nil {
		return f
	}
	return err
}

// elsewhereFirst puts the hint of an [*elsewhereError] before those that offer to create.
func elsewhereFirst(err error, f *ui.Failure) *ui.Failure {
	var e *cause.ElsewhereError
	if f == nil || !errors.As(err, &e) {
		return f
	}
	hints := f.Hints
	f.Hints = nil
	f.Hint("%s", remedy.Elsewhere(e))
	f.Hints = append(f.Hints, hints...)
	return f
}

// wayOut says how a pool gets a worker that it does not have, as its store allows.
func wayOut(e *beside.RoomError, name string) string {
	switch other := e.Other; {
	case e.Worker > e.Most:
		return fmt.Sprintf("take one that it has: its layout has no worker above %d", e.Most)
	case e.Between:
		return fmt.Sprintf("take one that it has: workers %d-%d, which lie between worker %d and those that it has, are of pool %s", other.First, other.Last, e.Worker, other.Name)
	case other.Name != "":
		return fmt.Sprintf("take one that it has: worker %d is of pool %s, which has workers %d-%d", e.Worker, other.Name, other.First, other.Last)
	}
	return fmt.Sprintf("widen the pool: firn pool set %s --workers %d-%d", phrase.ShellWord(name), e.Low, e.High)
}
