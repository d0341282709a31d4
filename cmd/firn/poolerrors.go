package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// This file says what a person can do about a pool that cannot be leased from.

// A poolPlace is where a pool was looked for. The zero one knows nothing.
type poolPlace struct {
	url   string            // of the store
	from  map[string]string // where each setting of the pool is from
	shard int64             // that ids are wanted of
	file  *config.File      // the firn.yaml that lists the pools; nil if there is no firn.yaml

	looks  bool // the command makes no ids: a name that is nearly a pool's is taken for a mistyped one
	serves bool // a server, which takes the pool of a series of the file from there
}

// poolFailure returns what to say of an error about a pool, or nil if it is none.
func poolFailure(err error, at poolPlace) *ui.Failure {
	var f *ui.Failure
	if errors.As(err, &f) {
		return nil // somebody has said it already
	}
	var lost *cause.LostPoolError
	var remains *pool.RemainsError
	var missing *lease.MissingPoolError
	var early *lease.NotYetError
	var full *lease.FullError
	var fresh *lease.FreshError
	var layout *lease.LayoutError
	var worker *lease.WorkerError
	var room *beside.RoomError
	var other *store.OtherStoreError
	if errors.As(err, &remains) { // of a store in a file, whose first pool would be made with it
		err = &cause.LostPoolError{MissingPoolError: &lease.MissingPoolError{Pool: remains.Pool}, Workers: remains.Workers}
	}
	switch {
	case errors.As(err, &lost):
		return ui.Failed("%w", ui.Rename(fmt.Sprintf("%s has no pool %q, and has %s of its workers: the pool was lost", storeAt(at.url), lost.Pool, phrase.Plural(lost.Workers, "record")), lost)).
			Hint("if there is a backup: restore it, then: %s", remedy.Recover(at.url)).
			Hint("only if there is no backup, %s", ensureLost(lost.Pool, lost.Left, at.from))
	case errors.As(err, &missing):
		return elsewhereFirst(err, missingPool(err, missing, at))
	case errors.As(err, &early):
		return tooEarly(err, early)
	case errors.As(err, &full):
		return fullPool(err, full, at)
	case errors.As(err, &fresh):
		return ui.Failed("%w", ui.Rename(phrase.Reason(err), err)).
			Hint("leave out %s to take any free one, or widen the pool: firn pool set %s --workers A-B", remedy.Setting(at.from, "worker"), phrase.ShellWord(fresh.Pool))
	case errors.As(err, &layout):
		return ui.Bad("%w", ui.Rename(fmt.Sprintf("pool %q has layout %s, not %s", layout.Pool, layoutText(layout.Have), layoutText(layout.Want)), layout)).
			Hint("leave out %s to use the pool's, which never changes. Only if ids of another layout never meet those of this pool in one table, queue or cache, they have a pool of their own (docs/guides/stores.md, The first use). To see the pools that are there: firn pool ls", remedy.Setting(at.from, "layout"))
	case errors.As(err, &worker):
		how := fmt.Sprintf("widen the pool, which is refused where another pool has one of the workers: firn pool set %s --workers %d-%d",
			phrase.ShellWord(worker.Pool), min(worker.First, worker.Worker), max(worker.Last, worker.Worker))
		if errors.As(err, &room) {
			how = wayOut(room, worker.Pool)
		}
		return ui.Bad("%w", ui.Rename(outside(err, worker), err)).Hint("leave out %s to take any free one, or %s", remedy.Setting(at.from, "worker"), how)
	case errors.As(err, &other):
		return otherStore(err, other, at.url)
	}
	return nil
}

// tooEarly says when the ids of a pool start, why, and how to wait for them.
func tooEarly(err error, early *lease.NotYetError) *ui.Failure {
	left := max(time.Until(early.StartsAt), 0).Truncate(10*time.Second) + 10*time.Second
	text := phrase.Reason(early)
	if early.Why == "" {
		text += ": for its outage budget a process makes ids while it does not reach the store"
	}
	f := ui.Failed("%w", ui.Rename(text, err))
	if early.Behind > 0 {
		f.Hint("if this host's clock is the wrong one, set it and run this command again: %s", remedy.WrongClock)
	}
	return f.HintFlag("wait", "to wait until then: --wait %s", phrase.Duration(left))
}

// ensureLost says how a pool is created that was lost, with the workers that are left to it.
func ensureLost(name, left string, from map[string]string) string {
	flag, note := "", ""
	if left != "" {
		flag, note = " --workers "+left, remedy.LargestFree(left)
		from = map[string]string{"workers": "--workers"}
	}
	return fmt.Sprintf("with the layout and the workers that the pool had: firn pool ensure %s%s%s", phrase.ShellWord(name), flag, remedy.EnsureNote(from)) + note
}

// otherStore says what to do about a store whose records were made in another one.
func otherStore(err error, e *store.OtherStoreError, at string) *ui.Failure {
	text := fmt.Sprintf("%s belongs to another store: this one is %s, and the record was made in %s, so this is a copy, a restored dump, or was moved", e.What, e.Have, e.Want)
	return ui.Failed("%w", ui.Rename(text, err)).
		Hint("if the other store is still there, use that one: two stores with the same records make the same ids").
		Hint("only if the other store no longer exists: stop all processes that use this one, then: %s", remedy.Recover(at)).
		Hint("only if this is a copy on purpose, such as for staging, and its ids never meet those of the other store in one table, queue or cache: the same command").
		Hint("only if the store was moved on purpose, nothing used the old one since the copy, and the old one is gone: firn store recover%s --moved", remedy.StoreFlag(at))
}

// missingPool says which pools there are, and how one is created. Where anything says that
// a pool was lost, it does not offer the way that is for one that never existed.
func missingPool(err error, e *lease.MissingPoolError, at poolPlace) *ui.Failure {
	name, where := phrase.ShellWord(e.Pool), storeAt(at.url)
	if e.Creating {
		return ui.Failed("%w", ui.Rename(fmt.Sprintf("pool %q of %s is not created yet: that has begun, and has not ended", e.Pool, where), e)).
			Hint("if nobody is creating it at this moment: firn pool ensure %s%s", name, remedy.EnsureNote(at.from))
	}
	text := fmt.Sprintf("%s has no pool %q", where, e.Pool)
	use := ""
	if len(e.Pools) == 0 {
		use = "If " + at.other() + ". "
	} else {
		text += "; it has: " + strings.Join(e.Pools, ", ")
		which, one := "one of these", e.Pools[0]
		if len(e.Pools) == 1 {
			which = "this one"
		} else if meant := nearest.Name(e.Pool, e.Pools); meant != "" {
			which, one = meant, meant
		}
		how := "--pool " + phrase.ShellWord(one)
		if at.serves && at.file != nil {
			how = fmt.Sprintf("pool: %s for the series in firn.yaml", one)
		}
		use = fmt.Sprintf("to use %s: %s. ", which, how)
		if at.file != nil && at.file.Pool(one) == nil {
			use = fmt.Sprintf("to use %s, %s, then name it: %s. ", which, at.file.Listing(one), how)
		}
	}
	if at.looks && nearest.Name(e.Pool, e.Pools) != "" {
		return ui.Failed("%w", ui.Rename(text, e)).Hint("%s", strings.TrimSuffix(use, ". "))
	}
	var crowded *beside.CrowdedError
	if errors.As(err, &crowded) {
		return ui.Failed("%w", ui.Rename(text, e)).Hint("%s", strings.TrimSuffix(use, ". ")).Hint("%s", remedy.Beside(crowded, e.Pool, at.from))
	}
	return ui.Failed("%w", ui.Rename(text, e)).HintAsking(
		fmt.Sprintf("%sIf %q never existed: firn pool create %s. If this database was restored, or you are not sure: firn pool ensure %s%s", use, e.Pool, name, name, remedy.EnsureNote(at.from)),
		fmt.Sprintf("%sIf this database was restored, or you are not sure: firn pool ensure %s%s. Only if no id was ever drawn from %q, here or in a database that this one was restored from: firn pool create %s --new",
			use, name, remedy.EnsureNote(at.from), e.Pool, name))
}

// other asks whether this is the store of the other programs: nothing in an empty one says that
// it is the wrong one.
func (p poolPlace) other() string {
	what := "store"
	switch scheme, _, _ := strings.Cut(p.url, ":"); scheme {
	case "postgres", "postgresql", "mysql":
		what = "database"
	case "sqlite":
		what = "file"
	}
	return "your other programs use another " + what + ", use that one: FIRN_STORE=URL"
}

// outside says that a pool does not have a worker.
func outside(err error, e *lease.WorkerError) string {
	text := fmt.Sprintf("worker %s is outside pool %q, which has workers %d-%d", e.Layout.NameWorker(e.Worker), e.Pool, e.First, e.Last)
	var host *leaseoptions.HostError
	if errors.As(err, &host) {
		return host.Error()
	}
	return text
}

// storeAt is the store of that URL, as people see it.
func storeAt(url string) string {
	if url == "" {
		return "the store"
	}
	return fromurl.Redact(url)
}

// layoutText is a layout's name, or its spec.
func layoutText(spec string) string {
	var l layoutFlag
	if l.Set(spec) != nil {
		return spec
	}
	return l.String()
}

// poolTrouble adds what can be done to an error about a pool that no command has explained.
func poolTrouble(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	at := poolPlace{looks: true}
	if set, failed := loadSettings(cmd); failed == nil {
		at.url = whichstore.Text(set.StoreURL().Text)
		at.from = set.origins(err)
	}
	if f := poolFailure(err, at); f != nil {
		return f
	}
	var name *pool.OptionError
	if errors.As(err, &name) && name.Option == "pool" {
		return ui.Bad("%w", err)
	}
	return err
}

// origins returns where each setting is from of the pool that an error is about.
func (s *settings) origins(err error) map[string]string {
	var layout *lease.LayoutError
	var worker *lease.WorkerError
	var missing *lease.MissingPoolError
	name := ""
	switch {
	case errors.As(err, &missing):
		name = missing.Pool
	case errors.As(err, &layout):
		name = layout.Pool
	case errors.As(err, &worker):
		name = worker.Pool
	default:
		return nil
	}
	from := map[string]string{}
	for _, k := range config.LeaseKeys {
		if flagOf(s.cmd, k.Name) == nil && missing != nil {
			continue // the command has no such setting
		}
		from[k.Name] = s.Knob(k, s.PoolSaid(name)).From
	}
	return from
}

// saidBy reports whether a flag was given on the command line.
func saidBy(f *pflag.Flag) bool { return f.Changed && len(f.Annotations[fromVariable]) == 0 }
