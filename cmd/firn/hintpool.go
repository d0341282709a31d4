package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

// shorterOutage says what to do about an outage budget that is longer than the pool's limit.
func shorterOutage(l *config.Leasing, limit time.Duration) string {
	return fmt.Sprintf("set %s to %s or less: a pool never gets a longer outage than it was created with", poolPlace{from: l.From}.setting("outage"), phrase.Duration(limit))
}

// explain adds to an error of a lease what can be done about it.
func explainLease(l *config.Leasing, err error) error {
	var f *ui.Failure
	var option *lease.OptionError
	var outage *open.LongOutageError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &outage):
		return ui.Bad("%w", l.Faults(outage.Err)).Hint("%s", shorterOutage(l, outage.Limit))
	case errors.As(err, &option):
		return l.Faults(err)
	}
	if f := poolFailure(err, poolPlace{url: open.StoreText(l.URL), from: l.From, file: l.File, serves: l.Serves}); f != nil {
		return f
	}
	return err
}

// ways says how the pool of that name can be had beside the others. Place says where its settings
// are from.
func crowdedWays(e *open.CrowdedError, name string, at poolPlace) string {
	word, text := phrase.ShellWord(name), fmt.Sprintf("with these settings %s could repeat ids of pool %s, which has workers %s. ", name, e.Other.Name, rangeOf(e.Other))
	workers, flag := e.Free, ""
	var words []string
	for _, name := range e.All {
		words = append(words, phrase.ShellWord(name))
	}
	switch {
	case e.Free != "":
		text += "To have a pool of its own, give it workers that no other pool has: if "
	case e.InOther != nil:
		lay, other := phrase.ShellWord(layoutName(e.Layout)), phrase.ShellWord(layoutName(e.Other.Layout))
		workers, flag = e.InOther.Free, " --layout "+other
		text = fmt.Sprintf("pool %s has had every worker, so no worker is left for layout %s. Only if their ids never meet in one table, queue or cache: firn pool ensure %s --may-repeat %s%s. Otherwise leave out --layout %s everywhere, and take layout %s: if ",
			e.Other.Name, lay, word, strings.Join(words, " --may-repeat "), at.ensureNote(), lay, other)
	case e.Leaving != "":
		workers = e.Leaving
		text += fmt.Sprintf("Pool %s is giving up workers %s. First, until it says that it has: firn pool set %s --workers %s. Then, if ", e.Other.Name, e.Leaving, phrase.ShellWord(e.Other.Name), rangeOf(e.Other))
	case e.Big.Name != "":
		have := e.Big
		middle := have.First + (have.Last-have.First+1)/2
		workers = fmt.Sprintf("%d-%d", middle, have.Last)
		if e.Big.Layout != e.Layout { // its workers are its own in every other layout
			flag = " --layout " + phrase.ShellWord(layoutName(e.Big.Layout))
		}
		text += fmt.Sprintf("To have a pool of its own, pool %s has to give it workers. First: firn pool set %s --workers %d-%d. Then, if ", e.Big.Name, phrase.ShellWord(e.Big.Name), have.First, middle-1)
	default:
		return text + fmt.Sprintf("No worker is left for it with this layout. Only if their ids never meet in one table, queue or cache: firn pool ensure %s --may-repeat %s%s", word, strings.Join(words, " --may-repeat "), at.ensureNote())
	}
	text += fmt.Sprintf("this database was restored, or you are not sure: firn pool ensure %s --workers %s%s (ids start about 5 min later). Only if no id was ever drawn from %q, here or in a database that this one was restored from: firn pool create %s --workers %s%s --new",
		word, workers, flag, name, word, workers, flag)
	if from := at.from["workers"]; from != "" && from != config.Default {
		text += fmt.Sprintf(". And write %s in %s", workers, at.setting("workers"))
	}
	return text
}

// hint says where to look before anything is created.
func elsewhereHint(e *open.ElsewhereError) string {
	text := fmt.Sprintf("the search_path here is %s", e.Path)
	if len(e.Missing) > 0 {
		text += ", and there is no schema " + strings.Join(e.Missing, ", ")
	}
	if len(e.Schemas) == 0 {
		return text + ". If a name is mistyped, correct it, and create nothing"
	}
	return fmt.Sprintf("%s. Schema %s has a table firn_records: if that is the store, name its schema in the URL (search_path=%s), and create nothing",
		text, strings.Join(e.Schemas, ", "), e.Schemas[0])
}

// elsewhereFirst puts the hint of an [*elsewhereError] before those that offer to create.
func elsewhereFirst(err error, f *ui.Failure) *ui.Failure {
	var e *open.ElsewhereError
	if f == nil || !errors.As(err, &e) {
		return f
	}
	hints := f.Hints
	f.Hints = nil
	f.Hint("%s", elsewhereHint(e))
	f.Hints = append(f.Hints, hints...)
	return f
}

// wayOut says how a pool gets a worker that it does not have, as its store allows.
func wayOut(e *open.RoomError, name string) string {
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

// rangeOf are the workers of a pool, as a flag says them.
func rangeOf(p pool.Info) string { return fmt.Sprintf("%d-%d", p.First, p.Last) }
