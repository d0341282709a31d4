package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	fromurl "github.com/firn-id/firn/store/open"
)

// This file prints what a recovery is about to do, and what it has done.

// explain says what will be done and what that means.
func (r *recovering) explain(w io.Writer, p *recovery.Plan, now time.Time) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "  - "+format+"\n", args...) }
	fmt.Fprintf(&b, "%s is made safe after it lost writes:\n", fromurl.Redact(r.url))
	say("every process that uses it must be stopped now: ids that one makes meanwhile may repeat")
	if r.path != "" {
		if err := r.explainFile(say); err != nil {
			return err
		}
	} else if p.CopyOf != nil {
		say("%s was made in another store, %s: if that one is in use, now or later, both make the same ids: then use that one, and do nothing here", p.CopyOf.What, p.CopyOf.Want)
		say("only where this is a copy on purpose, such as for staging, and its ids never meet those of the other store in one table, queue or cache, both may be used")
	}
	why := fmt.Sprintf("%s, the longest outage budget that a process may have had (for so long a process may make ids while it does not reach the store), and %s of clock error. If a process had a longer budget: --outage", phrase.Duration(p.Pause-recovery.ClockError), phrase.Duration(recovery.ClockError))
	until := now.Add(p.Pause).UTC().Format(time.RFC3339)
	if p.HasPools() {
		say("pools: %s. Every worker is taken from its process", phrase.List(poolNames(p.Contents)))
		switch later := explainAhead(say, p); {
		case later == 0:
			say("no ids for about %s, until %s: %s", phrase.Duration(p.Pause), until, why)
		case later < len(p.Starts):
			say("the ids of the other pools start in about %s, at %s: %s", phrase.Duration(p.Pause), until, why)
		}
	} else {
		say("pools: none. The ids of a pool that is created now start at %s: %s", until, why)
	}
	if series := p.Series(); len(series) > 0 {
		say("series: %s. Each leaves out %s, and continues at once", phrase.List(series), r.numbers.text(series))
	}
	say("a counter that the store has lost is not among its series: create it again, above its last number, before anything is started")
	if given := givenSince(p.Contents); len(given) > 0 {
		say("%s. %s", strings.Join(given, "; "), howFar)
	}
	for _, u := range p.UsedUp {
		say("series %s has no number left %s: %s", u.Series, untilText(u), lastText(u))
	}
	return ui.PrintNote(w, "%s", strings.TrimSuffix(b.String(), "\n"))
}

// explainAhead says which pools start later than the others, because of a record that is far ahead, and
// returns how many those are. Who reads it has not lost a year yet.
func explainAhead(say func(string, ...any), p *recovery.Plan) (later int) {
	before := map[string]time.Time{}
	for _, info := range p.Pools {
		before[info.Name] = info.StartsAt
	}
	for _, one := range p.Starts {
		if one.Why == "" {
			continue
		}
		later++
		say("the ids of pool %s start at %s, in %s: %s", one.Pool, phrase.Instant(one.StartsAt), phrase.Duration(time.Until(one.StartsAt).Round(time.Minute)), one.Why)
		if before[one.Pool].Equal(one.StartsAt) {
			say("an earlier firn store recover has started pool %s so late, and this one changes nothing about that", one.Pool)
			continue
		}
		say("if the clock of this host is behind, do nothing here: set it, and run this command again")
		say("if the store has lost nothing, do nothing here: then only workers with such a record are out of use until then, and the others of pool %s make ids (to see them: firn worker ls --pool %s)", one.Pool, phrase.ShellWord(one.Pool))
	}
	return later
}

// startOfOthers is when the ids of the pools start that no record far ahead keeps; the zero time where
// none is kept, or each.
func startOfOthers(pools []pool.Recovery) (at time.Time) {
	kept := 0
	for _, one := range pools {
		if one.Why != "" {
			kept++
		} else if one.StartsAt.After(at) {
			at = one.StartsAt
		}
	}
	if kept == 0 {
		return time.Time{}
	}
	return at
}

// explainFile says what becomes of the file.
func (r *recovering) explainFile(say func(string, ...any)) error {
	switch fi, err := os.Stat(r.path); {
	case err == nil:
		say("the file there now, of %s and %s bytes, is taken for the store", phrase.Instant(fi.ModTime()), phrase.Count(fi.Size()))
		say("if a copy of this file is in use elsewhere, now or later, both make the same ids: keep one, and remove the others")
	case errors.Is(err, os.ErrNotExist):
		say("there is no file: an empty one is made%s", r.withDirectory())
		say("if the file is on a volume that is not mounted, mount it, and do nothing here")
		say("if the file was moved, have every process use it where it is now, and make no other: both make the same ids")
	default:
		return err
	}
	return nil
}

// withDirectory says that the directory of the file is made too; "" where it is there.
func (r *recovering) withDirectory() string {
	if dir := filepath.Dir(r.path); !remedy.IsFile(dir) {
		return ", and its directory " + dir
	}
	return ""
}

// A recoveredLine is the store, or a pool, as --json prints it.
type recoveredLine struct {
	Store    string   `json:"store,omitempty"`
	Pool     string   `json:"pool,omitempty"`
	StartsAt string   `json:"starts_at,omitempty"`
	Workers  *int     `json:"workers_rewritten,omitempty"`
	Why      string   `json:"why,omitempty"` // of a pool: whose record keeps its ids from starting with the others
	Then     []string `json:"then,omitempty"`

	noPools bool   // the store has none
	others  string // when the ids of the pools start that no record keeps, where one keeps others
}

func printRecovered(out io.Writer, lines []recoveredLine, asJSON bool) error {
	enc := json.NewEncoder(out)
	for _, l := range lines {
		var err error
		switch {
		case asJSON:
			err = enc.Encode(l)
		case l.noPools:
			_, err = fmt.Fprintf(out, "%s is safe again: it has no pool; the ids of one that is created now start at %s\n", l.Store, l.StartsAt)
		case l.others != "":
			_, err = fmt.Fprintf(out, "%s is safe again: ids start at %s, but not in each pool\n", l.Store, l.others)
		case l.Store != "":
			_, err = fmt.Fprintf(out, "%s is safe again: ids start at %s\n", l.Store, l.StartsAt)
		case l.Why != "":
			_, err = fmt.Fprintf(out, "pool %s: %s rewritten; its ids start at %s: %s\n", l.Pool, phrase.Plural(*l.Workers, "record"), l.StartsAt, l.Why)
		default:
			_, err = fmt.Fprintf(out, "pool %s: %s rewritten\n", l.Pool, phrase.Plural(*l.Workers, "record"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printThen prints what is to follow, and why.
func printThen(out io.Writer, then []string, asJSON bool) error {
	if asJSON {
		return nil
	}
	for _, command := range then {
		why := "the store has records of its workers, and not its own; it gets all workers of the layout, unless firn.yaml or the command names those that it had"
		if strings.HasPrefix(command, "firn shard") {
			why = "this database has shards, which were restored with it"
		}
		if _, err := fmt.Fprintf(out, "then: %s (%s)\n", command, why); err != nil {
			return err
		}
	}
	return nil
}

// An acceptedLine is a counter that belongs to another store now, as --json prints it.
type acceptedLine struct {
	Series string `json:"series"`
	Kind   string `json:"kind"`
}

func printAccepted(out io.Writer, pools []pool.Info, counters []acceptedLine, asJSON bool) error {
	var errs []error
	enc := json.NewEncoder(out)
	say := func(line any, format string, args ...any) {
		var err error
		if asJSON {
			err = enc.Encode(line)
		} else {
			_, err = fmt.Fprintf(out, format+"\n", args...)
		}
		errs = append(errs, err)
	}
	for _, info := range pools {
		say(poolLineOf(info), "pool %s: belongs to this store now", info.Name)
	}
	for _, c := range counters {
		say(c, "%s %s: belongs to this store now", c.Kind, c.Series)
	}
	if len(errs) == 0 && !asJSON {
		say(nil, "every pool and counter belongs to this store now; no record had to be changed")
	}
	return errors.Join(errs...)
}
