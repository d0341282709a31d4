package main

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/open"
)

// This file says what a person can do about a pool that cannot be leased from.

// poolFailure returns what to say of an error about a pool, or nil if it is none. At is
// the URL of the store; "" is not known here.
func poolFailure(err error, at string) *failure {
	var f *failure
	if errors.As(err, &f) {
		return nil // somebody has said it already
	}
	var lost *lostPoolError
	var remains *pool.RemainsError
	var missing *lease.MissingPoolError
	var early *lease.NotYetError
	var layout *lease.LayoutError
	var worker *lease.WorkerError
	var other *lease.OtherStoreError
	if errors.As(err, &remains) { // of a store in a file, whose first pool would be made with it
		err = &lostPoolError{&lease.MissingPoolError{Pool: remains.Pool}, remains.Workers}
	}
	switch {
	case errors.As(err, &lost):
		return failed("%w", &renamed{fmt.Sprintf("%s has no pool %q, and has %s of its workers: the pool was lost", storeAt(at), lost.Pool, plural(lost.workers, "record")), lost}).
			hint("restore a backup, then: firn store recover%s; or, if there is none: firn pool ensure %s (ids start about 5 min later)", storeFlag(at), shellWord(lost.Pool))
	case errors.As(err, &missing):
		return missingPool(missing, at)
	case errors.As(err, &early):
		left := max(time.Until(early.StartsAt), 0).Truncate(10*time.Second) + 10*time.Second
		return failed("%w", err).hint("to wait until then: --wait %s", durationText(left))
	case errors.As(err, &layout):
		return bad("pool %q has layout %s, not %s", layout.Pool, layoutText(layout.Have), layoutText(layout.Want)).
			hint("leave out the layout to use the pool's, which never changes. Ids of another layout need a pool of their own: --pool NAME")
	case errors.As(err, &worker):
		return bad("%w", err).hint("leave out --worker to take any free one, or widen the pool: firn pool set %s --workers %d-%d",
			shellWord(worker.Pool), worker.First, widened(worker.Worker))
	case errors.As(err, &other):
		f := failed("%w", err)
		f.hints = otherStoreHints(at)
		return f
	}
	return nil
}

// otherStoreHints say what to do about a store whose pools were made in another one.
func otherStoreHints(at string) []string {
	return []string{
		"stop all processes that use this store, then: firn store recover" + storeFlag(at),
		"only if the store was moved on purpose, nothing used the old one since the copy, and the old one is gone: firn store recover" + storeFlag(at) + " --moved",
	}
}

// missingPool says which pools there are, and how one is created. Where anything says that
// a pool was lost, it does not offer the way that is for one that never existed.
func missingPool(e *lease.MissingPoolError, at string) *failure {
	name, where := shellWord(e.Pool), storeAt(at)
	if e.Creating {
		return failed("%w", &renamed{fmt.Sprintf("pool %q of %s is not created yet: that has begun, and has not ended", e.Pool, where), e}).
			hint("if nobody is creating it at this moment: firn pool ensure %s (ids start about 5 min later)", name)
	}
	text := fmt.Sprintf("%s has no pool %q", where, e.Pool)
	use := ""
	if len(e.Pools) > 0 {
		text += "; it has: " + strings.Join(e.Pools, ", ")
		use = fmt.Sprintf("to use one of these: --pool %s. ", shellWord(e.Pools[0]))
		if len(e.Pools) == 1 {
			use = fmt.Sprintf("to use this one: --pool %s. ", shellWord(e.Pools[0]))
		}
	}
	return failed("%w", &renamed{text, e}).
		hint("%sIf %q never existed: firn pool create %s. If this database was restored, or you are not sure: firn pool ensure %s (ids start about 5 min later)",
			use, e.Pool, name, name)
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

// storeFlag is the --store of a hint; nothing where the command finds the store without it.
func storeFlag(url string) string {
	if url == "" {
		return ""
	}
	return " --store " + shellWord(open.Redact(url))
}

// poolTrouble adds what can be done to an error about a pool that no command has explained.
func poolTrouble(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	at := ""
	if set, err := loadSettings(cmd); err == nil {
		at = storeText(set.storeURL().text)
	}
	if f := poolFailure(err, at); f != nil {
		return f
	}
	var name *pool.NameError
	if errors.As(err, &name) {
		return bad("%w", err)
	}
	return err
}

// saidBy reports whether a flag was given on the command line.
func saidBy(f *pflag.Flag) bool { return f.Changed && len(f.Annotations[fromVariable]) == 0 }
