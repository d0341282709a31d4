package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// This file says what a person can do about a pool that cannot be leased from.

// A poolPlace is where a pool was looked for. The zero one knows nothing.
type poolPlace struct {
	url  string            // of the store
	from map[string]string // where each setting of the pool is from
	file *config           // that lists the pools there may be; nil: there is none

	serves bool // a server, which takes the pool of a series of the file from there
}

// setting is what a person leaves out who wants another value of a setting.
func (p poolPlace) setting(name string) string {
	switch from := p.from[name]; {
	case from == "" || from == byDefault || strings.HasPrefix(from, "--"):
		return "--" + name
	case strings.Contains(from, ":"):
		return name + " of " + from
	default:
		return from
	}
}

// poolFailure returns what to say of an error about a pool, or nil if it is none.
func poolFailure(err error, at poolPlace) *ui.Failure {
	var f *ui.Failure
	if errors.As(err, &f) {
		return nil // somebody has said it already
	}
	var lost *lostPoolError
	var remains *pool.RemainsError
	var missing *lease.MissingPoolError
	var early *lease.NotYetError
	var layout *lease.LayoutError
	var worker *lease.WorkerError
	var room *roomError
	var other *store.OtherStoreError
	if errors.As(err, &remains) { // of a store in a file, whose first pool would be made with it
		err = &lostPoolError{&lease.MissingPoolError{Pool: remains.Pool}, remains.Workers, ""}
	}
	switch {
	case errors.As(err, &lost):
		return ui.Failed("%w", ui.Rename(fmt.Sprintf("%s has no pool %q, and has %s of its workers: the pool was lost", storeAt(at.url), lost.Pool, phrase.Plural(lost.workers, "record")), lost)).
			Hint("restore a backup, then: %s; or, if there is none, %s", recoverCommand(at.url, false), ensureLost(lost.Pool, lost.left, at))
	case errors.As(err, &missing):
		return elsewhereFirst(err, missingPool(err, missing, at))
	case errors.As(err, &early):
		left := max(time.Until(early.StartsAt), 0).Truncate(10*time.Second) + 10*time.Second
		text := fmt.Sprintf("the ids of pool %q start at %s, because an earlier process may have issued ids up to then; wait until then",
			early.Pool, early.StartsAt.UTC().Format(time.RFC3339))
		return ui.Failed("%w", ui.Rename(text, err)).HintFlag("wait", "to wait until then: --wait %s", phrase.Duration(left))
	case errors.As(err, &layout):
		return ui.Bad("pool %q has layout %s, not %s", layout.Pool, layoutText(layout.Have), layoutText(layout.Want)).
			Hint("leave out %s to use the pool's, which never changes. Only if ids of another layout never meet those of this pool in one table, queue or cache, they have a pool of their own (docs/stores.md, The first use). To see the pools that are there: firn pool ls", at.setting("layout"))
	case errors.As(err, &worker):
		how := fmt.Sprintf("widen the pool, which is refused where another pool has one of the workers: firn pool set %s --workers %d-%d",
			phrase.ShellWord(worker.Pool), min(worker.First, worker.Worker), max(worker.Last, worker.Worker))
		if errors.As(err, &room) {
			how = room.how
		}
		return ui.Bad("%w", ui.Rename(outside(err, worker), err)).Hint("leave out %s to take any free one, or %s", at.setting("worker"), how)
	case errors.As(err, &other):
		return otherStore(err, other, at.url)
	}
	return nil
}

// ensureLost says how a pool is created that was lost, with the workers that are left to it.
func ensureLost(name, left string, at poolPlace) string {
	flag := ""
	if left != "" {
		flag = " --workers " + left
		at.from = map[string]string{"workers": "--workers"}
	}
	return fmt.Sprintf("with the layout and the workers that the pool had: firn pool ensure %s%s%s", phrase.ShellWord(name), flag, at.ensureNote())
}

// ensureNote says what follows where a pool is ensured. Nobody but a person knows which
// workers a lost pool had that neither firn.yaml nor a flag names: with more than those it
// could repeat the ids of a pool in another store.
func (p poolPlace) ensureNote() string {
	if from := p.from["workers"]; from != "" && from != byDefault {
		return " (ids start about 5 min later)"
	}
	return " (ids start about 5 min later, and with all workers of the layout: if the pool had fewer, name them in that command)"
}

// leftTo returns the workers that the other pools leave to a pool that was lost: the range
// without theirs that has all its worker records. It returns "" where there are no such
// records, where another pool has one of these workers, and where the other pools leave all.
func leftTo(ctx context.Context, s store.Store, name string, l firn.Layout) string {
	if !l.IsValid() {
		l = firn.Default()
	}
	recs, failed := s.List(ctx, term.KeyWorkers(name))
	others, unlisted := pool.List(ctx, s)
	if failed != nil || unlisted != nil || len(recs) == 0 {
		return ""
	}
	all := term.Range{First: 0, Last: l.Workers() - 1}
	had := term.Range{First: all.Last, Last: 0}
	for _, rec := range recs {
		n, ok := term.WorkerOf(name, rec.Key)
		if !ok || n > all.Last {
			return ""
		}
		had = term.Range{First: min(had.First, n), Last: max(had.Last, n)}
	}
	left := all
	for _, other := range others {
		if other.Name == name || !term.SameWorkerBits(l, other.Layout) {
			continue
		}
		theirs := term.Range{First: other.First, Last: other.Last}
		if r, err := term.ParseRange(other.GivingUp, other.Layout); err == nil {
			theirs = term.Range{First: min(theirs.First, r.First), Last: max(theirs.Last, r.Last)}
		}
		switch {
		case theirs.Last < had.First:
			left.First = max(left.First, theirs.Last+1)
		case theirs.First > had.Last:
			left.Last = min(left.Last, theirs.First-1)
		default:
			return ""
		}
	}
	if left == all {
		return ""
	}
	return left.String()
}

// otherStore says what to do about a store whose records were made in another one.
func otherStore(err error, e *store.OtherStoreError, at string) *ui.Failure {
	text := fmt.Sprintf("%s belongs to another store: this one is %s, and the record was made in %s, so this is a copy, a restored dump, or was moved", e.What, e.Have, e.Want)
	return ui.Failed("%w", ui.Rename(text, err)).
		Hint("if the other store is still there, use that one: two stores with the same records make the same ids").
		Hint("only if the other store is gone for good: stop all processes that use this one, then: %s", recoverCommand(at, strings.HasPrefix(e.What, "seri"))).
		Hint("only if the store was moved on purpose, nothing used the old one since the copy, and the old one is gone: firn store recover%s --moved", storeFlag(at))
}

// missingPool says which pools there are, and how one is created. Where anything says that
// a pool was lost, it does not offer the way that is for one that never existed.
func missingPool(err error, e *lease.MissingPoolError, at poolPlace) *ui.Failure {
	name, where := phrase.ShellWord(e.Pool), storeAt(at.url)
	if e.Creating {
		return ui.Failed("%w", ui.Rename(fmt.Sprintf("pool %q of %s is not created yet: that has begun, and has not ended", e.Pool, where), e)).
			Hint("if nobody is creating it at this moment: firn pool ensure %s%s", name, at.ensureNote())
	}
	text := fmt.Sprintf("%s has no pool %q", where, e.Pool)
	use := ""
	if len(e.Pools) > 0 {
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
		if at.file != nil && at.file.pool(one) == nil {
			use = fmt.Sprintf("to use %s, %s, then name it: %s. ", which, at.file.listing(one), how)
		}
	}
	var beside *crowdedError
	if errors.As(err, &beside) {
		return ui.Failed("%w", ui.Rename(text, e)).Hint("%s", strings.TrimSuffix(use, ". ")).Hint("%s", beside.ways(e.Pool, at))
	}
	return ui.Failed("%w", ui.Rename(text, e)).HintAsking(
		fmt.Sprintf("%sIf %q never existed: firn pool create %s. If this database was restored, or you are not sure: firn pool ensure %s%s", use, e.Pool, name, name, at.ensureNote()),
		fmt.Sprintf("%sIf this database was restored, or you are not sure: firn pool ensure %s%s. Only if no id was ever drawn from %q, here or in a database that this one was restored from: firn pool create %s --new",
			use, name, at.ensureNote(), e.Pool, name))
}

// outside says that a pool does not have a worker.
func outside(err error, e *lease.WorkerError) string {
	text := fmt.Sprintf("worker %d is outside pool %q, which has workers %d-%d", e.Worker, e.Pool, e.First, e.Last)
	var host *hostError
	if errors.As(err, &host) {
		return fmt.Sprintf("host %s asks for %s", host.host, strings.Replace(text, " is outside", ", which is outside", 1))
	}
	return text
}

// A roomError says how a pool gets a worker that it does not have, as its store allows.
type roomError struct {
	error
	how string
}

func (e *roomError) Unwrap() error { return e.error }

// roomFor adds to the error for a worker that the pool does not have how it gets that
// worker, if it can.
func roomFor(ctx context.Context, s store.Store, err error) error {
	var e *lease.WorkerError
	if !errors.As(err, &e) {
		return err
	}
	all, failed := pool.List(ctx, s)
	i := slices.IndexFunc(all, func(p pool.Info) bool { return p.Name == e.Pool })
	if failed != nil || i < 0 {
		return err
	}
	own := all[i]
	most := own.Layout.Workers() - 1
	if e.Worker > most {
		return &roomError{err, fmt.Sprintf("take one that it has: its layout has no worker above %d", most)}
	}
	low, high := min(e.Worker, own.First), max(min(widened(e.Worker), most), own.Last)
	for _, other := range all {
		switch {
		case other.Name == e.Pool || slices.Contains(own.MayRepeat, other.Name) || slices.Contains(other.MayRepeat, own.Name):
		case other.First <= e.Worker && e.Worker <= other.Last:
			return &roomError{err, fmt.Sprintf("take one that it has: worker %d is of pool %s, which has workers %d-%d", e.Worker, other.Name, other.First, other.Last)}
		case other.First > own.Last && other.Last < e.Worker, other.Last < own.First && other.First > e.Worker:
			return &roomError{err, fmt.Sprintf("take one that it has: workers %d-%d, which lie between worker %d and those that it has, are of pool %s", other.First, other.Last, e.Worker, other.Name)}
		case other.First > max(e.Worker, own.Last):
			high = min(high, other.First-1)
		}
	}
	return &roomError{err, fmt.Sprintf("widen the pool: firn pool set %s --workers %d-%d", phrase.ShellWord(e.Pool), low, high)}
}

// storeAt is the store of that URL, as people see it.
func storeAt(url string) string {
	if url == "" {
		return "the store"
	}
	return open.Redact(url)
}

// layoutText is a layout's name, or its spec.
func layoutText(spec string) string {
	var l layoutFlag
	if l.Set(spec) != nil {
		return spec
	}
	return l.String()
}

// widened is the last worker of the smallest range of a whole number of bits that has n.
func widened(n int64) int64 { return 1<<bits.Len64(uint64(n)) - 1 }

// checkPlace returns a [*store.OtherStoreError] where a pool or a counter of the store says
// that it was made in another one.
func checkPlace(ctx context.Context, s store.Store) error {
	for _, check := range []func(context.Context, store.Store) error{pool.CheckStore, checkSequences, checkDocuments} {
		if err := check(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// checkSequences and checkDocuments return a [*store.OtherStoreError] where a counter of the
// store says that this one is a copy.
func checkSequences(ctx context.Context, s store.Store) error {
	return record.CheckStore(ctx, s, block.Keys, "series")
}

func checkDocuments(ctx context.Context, s store.Store) error {
	return record.CheckStore(ctx, s, dated.Keys, "serial")
}

// poolTrouble adds what can be done to an error about a pool that no command has explained.
func poolTrouble(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var at poolPlace
	if set, err := loadSettings(cmd); err == nil {
		at.url = storeText(set.storeURL().text)
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
	name := ""
	switch {
	case errors.As(err, &layout):
		name = layout.Pool
	case errors.As(err, &worker):
		name = worker.Pool
	default:
		return nil
	}
	from := map[string]string{}
	for _, k := range knobs {
		from[k.name] = s.knob(k, s.poolSaid(name)).from
	}
	return from
}

// saidBy reports whether a flag was given on the command line.
func saidBy(f *pflag.Flag) bool { return f.Changed && len(f.Annotations[fromVariable]) == 0 }

// storeFlag is the --store of a hint that has to name its store, whoever types it. A URL
// with a password is left to the composer of hints, which repeats a flag that was given.
func storeFlag(url string) string {
	if url == "" || withoutPassword(url) != url {
		return ""
	}
	return " --store " + phrase.ShellWord(url)
}
