package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

func newStoreRecover() *cobra.Command {
	r := &recovery{}
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make a store safe after a restore or a failover that lost writes",
		Long: `Make a store safe that has lost writes: after you put back a backup or a snapshot, after
a replica was promoted that lacked writes of its primary, after a file was removed or
replaced, and wherever a process says that its store has forgotten something.

The store does not know any more which ids were made. So firn store recover starts the
ids of all its pools above everything that a process may have made, and takes every
worker from its process: no ids for the longest outage budget, 5m or --outage or what a
pool was created with, and 10s more. No clock says how far a counter had come, so
sequences, tickets and documents leave out --numbers N, and go on at once. N is a count: at least
the highest number in use less the highest that the store still knows as granted, which the
command prints of sequences. A ticket over k stores moves on by k times N.

Stop every process that uses the store before, and start them after: they wait until ids
start. If the store is a SQLite file, the file at the path is accepted. Where there is no
file, the command fails and creates none; with --lost it creates an empty one. You may run
the command again, and must after an error.

Grant files may stay where a pool is still there: a process that starts with one finds
that the ids start later. Where a pool itself is lost, remove its grant files first.

A copy on purpose, such as for staging, is made safe in the same way, if its ids and those of
the original never meet in one table, queue or cache: both make the same ids.

With --moved nothing starts later and no number is left out. It is only for a store that you moved on purpose, when
nothing used the old one since the copy was made, and the old one is gone.`,
		Example: `  firn store recover --store postgres://app@db/app
  firn store recover --store sqlite:/var/lib/app/ids.db --numbers 100000 --outage 10m --yes
  firn store recover --store postgres://app@newdb/app --moved`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.load(cmd); err != nil {
				return err
			}
			ctx := cmd.Context()
			return r.run(ctx, cmd)
		},
	}
	addStore(cmd)
	cmd.Flags().DurationVar(&r.outage, "outage", 0, "the longest outage budget of any process that used the store ("+
		phrase.Duration(term.OutageDurable)+", or what firn.yaml says if that is more)")
	addNumbers(cmd)
	cmd.Flags().BoolVar(&r.moved, "moved", false, "the store was moved on purpose, nothing used the old one since the copy, and the old one is gone")
	cmd.Flags().BoolVar(&r.lost, "lost", false, "the SQLite file is gone for good, with all its copies, and was not moved: create an empty one")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask: all processes are stopped, and no other copy of the store will be used")
	return cmd
}

// A recovery is what is to be done to a store.
type recovery struct {
	url      string
	path     string // of the file; empty: it has none
	implicit bool   // nobody named it
	outage   time.Duration
	said     bool    // the outage is from the command line
	numbers  skipped // that counters leave out
	moved    bool
	lost     bool
	yes      bool
	hints    hinter
}

// load reads the settings.
func (r *recovery) load(cmd *cobra.Command) (err error) {
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	r.hints, r.url = hinter{cmd}, set.StoreURL().Text
	if r.numbers, err = numbersOf(cmd); err != nil {
		return err
	}
	if r.url == "" {
		path, err := open.DefaultStore()
		if err != nil {
			return err
		}
		r.url, r.implicit = "sqlite:"+path, true
	}
	if path, ok := open.SqliteFile(r.url); ok {
		r.path = path
	}
	f := cmd.Flags().Lookup("outage")
	switch {
	case r.lost && r.moved:
		return ui.Bad("--moved and --lost: a store was either moved or lost")
	case r.lost && r.path == "":
		return ui.Bad("--lost is for a SQLite file that is gone, and this store is a server").Hint("leave out --lost: firn store recover")
	case r.moved && (saidBy(f) || saidBy(cmd.Flags().Lookup("numbers"))):
		return ui.Bad("--moved changes no time and no counter: it is without --outage and --numbers").Hint("if the old store is in use or lost writes: leave out --moved")
	case f.Changed && r.outage < time.Second:
		return ui.Bad("%s %s: no process had less than 1s", origin(f), r.outage)
	}
	// Too little would let ids repeat. So only who says so here has less than the
	// default: a variable is about one process, and others had what they had.
	if r.said = saidBy(f); !r.said {
		r.outage = max(r.outage, term.OutageDurable)
		if set.File != nil {
			for i := range set.File.Pools {
				r.outage = max(r.outage, set.File.Pools[i].Options.Outage)
			}
		}
	}
	return nil
}

// A recoveryPlan is what a store has that a recovery changes.
type recoveryPlan struct {
	pools  []pool.Info
	lost   []string // pools without a record, of which there are records of workers
	series []string
	shards bool                   // the same database has shards
	since  []string               // up to where, and when, each sequence was last granted numbers
	usedUp []usedUp               // series that have no number left after it
	other  *store.OtherStoreError // the store is a copy of another one, or was moved
}

// plan reads what the store has.
func (r *recovery) plan(ctx context.Context, s store.Store) (p recoveryPlan, err error) {
	if p.pools, err = pool.List(ctx, s); err != nil {
		return p, err
	}
	if p.lost, err = lostPools(ctx, s); err != nil {
		return p, err
	}
	sequences, err := sequence.List(ctx, s)
	if err != nil {
		return p, err
	}
	documents, err := document.List(ctx, s)
	if err != nil {
		return p, err
	}
	for _, one := range sequences {
		p.series = append(p.series, one.Name)
		if text := givenSince(one); text != "" {
			p.since = append(p.since, text)
		}
	}
	for _, one := range documents {
		p.series = append(p.series, one.Name)
	}
	p.shards = holdsShards(ctx, r.url)
	if err := open.CheckPlace(ctx, s); err != nil && !errors.As(err, &p.other) {
		return p, err
	}
	return p, nil
}

// lostPools are the names of pools whose record is missing, while records of their workers
// are there.
func lostPools(ctx context.Context, s store.Store) ([]string, error) {
	list, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	var names []string
	for _, rec := range list {
		name, _, below := strings.Cut(strings.TrimPrefix(rec.Key, term.KeyPools), "/")
		there[name] = there[name] || !below
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return there[name] }), nil
}

// holdsShards reports whether the database of the store has shards of firn's, as far as it
// says so.
func holdsShards(ctx context.Context, url string) bool {
	if !strings.HasPrefix(url, "postgres") {
		return false
	}
	config, err := fromurl.PostgreSQL(url)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	var table, any bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('firn.shard') IS NOT NULL").Scan(&table); err != nil || !table {
		return false
	}
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM firn.shard)").Scan(&any)
	return err == nil && any
}

// run makes the store safe.
func (r *recovery) run(ctx context.Context, cmd *cobra.Command) error {
	act := r.recover
	if r.moved {
		act = r.accept
	}
	asked, accept := false, sqlite.Restored
	do := func(s store.Store) error {
		p, err := r.plan(ctx, s)
		if err == nil && !r.moved {
			p.usedUp, err = r.check(ctx, s, p)
		}
		if err == nil && !asked {
			err = r.confirm(ctx, cmd, p)
		}
		if err != nil {
			return err
		}
		return act(ctx, s, p, cmd.OutOrStdout(), wantsJSON(cmd))
	}
	if r.path == "" {
		s, err := fromurl.URL(ctx, r.url)
		if err != nil {
			return err
		}
		return errors.Join(do(s), s.Close())
	}
	switch _, err := os.Stat(r.path); {
	case errors.Is(err, os.ErrNotExist) && r.moved:
		return ui.Failed("there is no file %s, so none was moved there", r.path)
	case errors.Is(err, os.ErrNotExist) && !r.lost:
		return r.noFile()
	case errors.Is(err, os.ErrNotExist): // ask before one is created
		if err := r.confirm(ctx, cmd, recoveryPlan{}); err != nil {
			return err
		}
		asked, accept = true, sqlite.CreateLost
	case err != nil:
		return err
	case r.lost:
		return ui.Bad("--lost: the file %s is there", r.path).Hint("to make it safe: firn store recover%s", storeFlag(r.url))
	}
	if r.implicit || r.lost { // a directory may be lost with its file
		if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
			return err
		}
	}
	return accept(ctx, r.path, func(s *sqlite.Store) error { return do(s) })
}

// noFile is the error of a path where there is no file. A moved file looks the same as a lost
// one, and a second file would make the ids of the moved one: so none is made unasked.
func (r *recovery) noFile() error {
	f := ui.Failed("there is no file %s, so nothing was done: a second file would make the ids of the first again", r.path)
	var none *sqlite.MissingDirectoryError
	if _, err := sqlite.Inspect(r.path); errors.As(err, &none) && !r.implicit {
		f.Hints = missingDirectory(none).Hints
		return f
	}
	for _, text := range noFileHints(r.url, "if there is a backup, put it back, and run this command again") {
		f.Hint("%s", text)
	}
	return f
}

// confirm says what will be done and what that means, and asks.
func (r *recovery) confirm(ctx context.Context, cmd *cobra.Command, p recoveryPlan) error {
	if err := r.explain(cmd.ErrOrStderr(), p, time.Now()); err != nil || r.yes {
		return err
	}
	question, flags := "Are all processes stopped?", ""
	switch {
	case r.moved:
		question, flags = "Was the store moved on purpose, has nothing used the old one since the copy, and is the old one gone?", " --moved"
	case r.lost:
		flags = " --lost"
		question = "Are all processes stopped, and is the file gone for good, with all its copies: not moved, and not on a volume that is not mounted?"
	case r.path != "": // a server has one address, and a file may have been copied
		question = "Are all processes stopped, and will no other copy of the file be used?"
	case p.other != nil:
		question = "Are all processes stopped, and is the store that this one is a copy of gone for good? Or is this a copy on purpose, and its ids never meet those of the other store?"
	}
	return ui.MustAsk(ctx, cmd, question, fmt.Sprintf("firn store recover%s%s%s --yes", storeFlag(r.url), flags, r.numbers.flags()))
}

// check returns the series that have no number left after the recovery, or an error where
// the numbers to leave out cannot be meant.
func (r *recovery) check(ctx context.Context, s store.Store, p recoveryPlan) ([]usedUp, error) {
	if err := r.numbers.check(p.series, p.since); err != nil || len(p.series) == 0 {
		return nil, err
	}
	all, err := r.numbers.usedUp(ctx, s)
	if err != nil {
		return nil, err
	}
	outage := ""
	if r.said {
		outage = " --outage " + phrase.Duration(r.outage)
	}
	return all, r.numbers.refuse(all, r.url, outage)
}

// explain says what will be done and what that means.
func (r *recovery) explain(w io.Writer, p recoveryPlan, now time.Time) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "  - "+format+"\n", args...) }
	names := make([]string, len(p.pools))
	longest := r.outage
	for i, info := range p.pools {
		names[i] = info.Name
		longest = max(longest, info.OutageLimit)
	}
	if r.moved {
		fmt.Fprintf(&b, "%s is accepted as the place of its pools and counters:\n", fromurl.Redact(r.url))
		say("pools: %s. Series: %s. Nothing else changes, and ids and numbers start at once", phrase.List(names), phrase.List(p.series))
		say("if any process used the old store after the copy was made, ids and numbers repeat: then leave out --moved")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "%s is made safe after it lost writes:\n", fromurl.Redact(r.url))
	say("every process that uses it must be stopped now: ids that one makes meanwhile may repeat")
	if r.path != "" {
		if err := r.explainFile(say); err != nil {
			return err
		}
	} else if p.other != nil {
		say("%s was made in another store, %s: if that one is in use, now or later, both make the same ids: then use that one, and do nothing here", p.other.What, p.other.Want)
		say("only where this is a copy on purpose, such as for staging, and its ids never meet those of the other store in one table, queue or cache, both may be used")
	}
	pause := longest + 2*term.Skew
	why := fmt.Sprintf("%s of outage budget and %s of clock error. --outage, if some process had a longer budget", phrase.Duration(longest), phrase.Duration(2*term.Skew))
	until := now.Add(pause).UTC().Format(time.RFC3339)
	if len(p.pools)+len(p.lost) > 0 {
		say("pools: %s. Every worker is taken from its process", phrase.List(names))
		say("no ids for about %s, until %s: %s", phrase.Duration(pause), until, why)
	} else {
		say("pools: none. The ids of a pool that is created now start at %s: %s", until, why)
	}
	if len(p.series) > 0 {
		say("series: %s. Each leaves out %s, and goes on at once", phrase.List(p.series), r.numbers.text(p.series))
	}
	say("a counter that the store has lost is not among its series: create it again, above its last number, before anything is started")
	for _, text := range p.since {
		say("%s. %s", text, howFar)
	}
	for _, u := range p.usedUp {
		say("series %s has no number left %s: %s", u.series, u.until, u.room)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// explainFile says what becomes of the file.
func (r *recovery) explainFile(say func(string, ...any)) error {
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
func (r *recovery) withDirectory() string {
	if dir := filepath.Dir(r.path); !isFile(dir) {
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
	Then     []string `json:"then,omitempty"`

	noPools bool // the store has none
}

// recover raises every counter, and starts all ids later.
func (r *recovery) recover(ctx context.Context, s store.Store, p recoveryPlan, out io.Writer, asJSON bool) error {
	counters, err := raiseCounters(ctx, s, r.numbers)
	if err != nil {
		return err
	}
	pools, err := pool.Recover(ctx, s, r.outage)
	if err != nil {
		return classify(fmt.Errorf("%w; %s done", err, phrase.Plural(len(pools), "pool"))).
			Hint("before anything is started, again: firn store recover%s%s", storeFlag(r.url), r.numbers.flags())
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return err
	}
	all, err := term.ReadStore(rec)
	if err != nil {
		return err
	}
	line := recoveredLine{Store: fromurl.Redact(r.url), Then: p.then(r.hints), noPools: len(p.pools)+len(p.lost) == 0}
	var lines []recoveredLine
	starts := all.Floor
	for _, one := range pools {
		if one.StartsAt.After(starts) {
			starts = one.StartsAt
		}
		lines = append(lines, recoveredLine{Pool: one.Pool, StartsAt: phrase.Instant(one.StartsAt), Workers: &one.Workers})
	}
	line.StartsAt = phrase.Instant(starts)
	return errors.Join(printRecovered(out, append([]recoveredLine{line}, lines...), asJSON),
		printCounters(out, counters, asJSON), printThen(out, line.Then, asJSON))
}

// then are the commands that are to follow.
func (p recoveryPlan) then(h hinter) []string {
	var all []string
	for _, name := range p.lost {
		all = append(all, h.compose("firn pool ensure "+phrase.ShellWord(name)))
	}
	if p.shards {
		all = append(all, h.compose("firn shard reopen SERVER"))
	}
	return all
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
		case l.Store != "":
			_, err = fmt.Fprintf(out, "%s is safe again: ids start at %s\n", l.Store, l.StartsAt)
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

// accept accepts that the pools and the counters are in this store now.
func (r *recovery) accept(ctx context.Context, s store.Store, _ recoveryPlan, out io.Writer, asJSON bool) error {
	pools, err := pool.AcceptMove(ctx, s)
	if err != nil {
		return err
	}
	sequences, err := sequence.AcceptMove(ctx, s)
	if err != nil {
		return err
	}
	documents, err := document.AcceptMove(ctx, s)
	if err != nil {
		return err
	}
	var counters []acceptedLine
	for _, in := range sequences {
		counters = append(counters, acceptedLine{in.Name, config.Sequence})
	}
	for _, in := range documents {
		counters = append(counters, acceptedLine{in.Name, config.Document})
	}
	return printAccepted(out, pools, counters, asJSON)
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
