package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

func newStoreRecover() *cobra.Command {
	r := &recovering{}
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
sequences and documents skip N numbers, as --numbers N says, and continue at once. N is a count: how
many numbers any of them can have given out that the store no longer knows. The command prints
the highest number that it knows of each sequence. A sequence over k stores skips k times N.

Stop every process that uses the store before, and start them after: they wait until ids
start. If the store is a SQLite file, the file at the path is accepted. Where there is no
file, the command fails and creates none; with --lost it creates an empty one. You may run
the command again, and must after an error.

Grant files may stay where a pool is still there: a process that starts with one finds
that the ids start later. Where a pool itself is lost, remove its grant files first.

A copy on purpose, such as for staging, is made safe in the same way, if its ids and those of
the original never meet in one table, queue or cache: both make the same ids.

With --moved nothing starts later and no number is skipped. It is only for a store that you moved on purpose, when
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
		phrase.Duration(pool.DefaultOutage)+", or what firn.yaml says if that is more)")
	addNumbers(cmd)
	cmd.Flags().BoolVar(&r.moved, "moved", false, "the store was moved on purpose, nothing used the old one since the copy, and the old one is gone")
	cmd.Flags().BoolVar(&r.lost, "lost", false, "the SQLite file and all its copies are lost, and it was not moved: create an empty one")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask: all processes are stopped, and no other copy of the store will be used")
	return cmd
}

// A recovering is what a person asks to be done to a store.
type recovering struct {
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
func (r *recovering) load(cmd *cobra.Command) (err error) {
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	r.hints, r.url = hinter{cmd: cmd}, set.StoreURL().Text
	if r.numbers, err = numbersOf(cmd); err != nil {
		return err
	}
	if r.url == "" {
		path, err := whichstore.Default()
		if err != nil {
			return err
		}
		r.url, r.implicit = "sqlite:"+path, true
	}
	if path, ok := whichstore.File(r.url); ok {
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
		r.outage = max(pool.DefaultOutage, set.longestOutage())
	}
	return nil
}

// plan returns what the recovery does to a store with these contents.
func (r *recovering) plan(ctx context.Context, c *recovery.Contents) (*recovery.Plan, error) {
	if err := r.numbers.checkUse(c, r.url); err != nil {
		return nil, err
	}
	p, err := c.Plan(ctx, &recovery.Options{Outage: r.outage, Numbers: r.numbers.all, Each: r.numbers.each})
	if err == nil {
		return p, nil
	}
	outage := ""
	if r.said {
		outage = " --outage " + phrase.Duration(r.outage)
	}
	return nil, r.numbers.explain(err, c, r.url, outage)
}

// run makes the store safe.
func (r *recovering) run(ctx context.Context, cmd *cobra.Command) error {
	asked, accept := false, sqlite.Restored
	do := func(s store.Store) error {
		c, err := recovery.Read(ctx, s)
		if err != nil {
			return err
		}
		if r.moved {
			return r.move(ctx, cmd, s, c)
		}
		p, err := r.plan(ctx, c)
		if err == nil && !asked {
			err = r.confirm(ctx, cmd, p)
		}
		if err != nil {
			return err
		}
		return r.recover(ctx, p, cmd.OutOrStdout(), wantsJSON(cmd))
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
		p, err := r.plan(ctx, &recovery.Contents{})
		if err == nil {
			err = r.confirm(ctx, cmd, p)
		}
		if err != nil {
			return err
		}
		asked, accept = true, sqlite.CreateLost
	case err != nil:
		return err
	case r.lost:
		f := ui.Bad("--lost: the file %s is there", r.path)
		if remedy.IsEmpty(r.path) {
			f = ui.Bad("--lost: the file %s is there, and is empty", r.path)
		}
		return hintLost(f, r.url, "if this command has made that file, nothing is left to do. Else, to make it safe: firn store recover"+remedy.StoreFlag(r.url))
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
func (r *recovering) noFile() error {
	f := ui.Failed("there is no file %s, so nothing was done: a second file would make the ids of the first again", r.path)
	var none *sqlite.MissingDirectoryError
	if _, err := sqlite.Inspect(r.path); errors.As(err, &none) && !r.implicit {
		f.Hints = missingDirectory(none).Hints
		return f
	}
	for _, text := range remedy.NoFile(r.url, "if there is a backup, put it back, and run this command again") {
		f.Hint("%s", text)
	}
	return f
}

// confirm says what will be done and what that means, and asks.
func (r *recovering) confirm(ctx context.Context, cmd *cobra.Command, p *recovery.Plan) error {
	if err := r.explain(cmd.ErrOrStderr(), p, time.Now()); err != nil || r.yes {
		return err
	}
	question, flags := "Are all processes stopped?", ""
	switch {
	case r.lost:
		flags = " --lost"
		question = "Are all processes stopped, and are the file and all its copies lost: not moved, and not on a volume that is not mounted?"
	case r.path != "": // a server has one address, and a file may have been copied
		question = "Are all processes stopped, and will no other copy of the file be used?"
	case p.CopyOf != nil:
		question = "Are all processes stopped, and is the store that this one is a copy of lost? Or is this a copy on purpose, and its ids never meet those of the other store?"
	}
	return ui.MustAsk(ctx, cmd, question, fmt.Sprintf("firn store recover%s%s%s --yes", remedy.StoreFlag(r.url), flags, r.numbers.flags()))
}

// poolNames are the names of a store's pools.
func poolNames(c *recovery.Contents) []string {
	names := make([]string, len(c.Pools))
	for i, info := range c.Pools {
		names[i] = info.Name
	}
	return names
}

// recover raises every counter, and starts all ids later.
func (r *recovering) recover(ctx context.Context, p *recovery.Plan, out io.Writer, asJSON bool) error {
	done, err := p.Run(ctx)
	if err != nil {
		return classify(err).Hint("before anything is started, again: firn store recover%s%s", remedy.StoreFlag(r.url), r.numbers.flags())
	}
	line := recoveredLine{Store: fromurl.Redact(r.url), StartsAt: phrase.Instant(done.StartsAt), Then: r.then(ctx, p), noPools: !p.HasPools()}
	lines := []recoveredLine{line}
	if soon := startOfOthers(done.Pools); !soon.IsZero() { // the instant of the whole store is that of the latest pool
		lines[0].others = phrase.Instant(soon)
	}
	for _, one := range done.Pools {
		lines = append(lines, recoveredLine{Pool: one.Pool, StartsAt: phrase.Instant(one.StartsAt), Workers: &one.Workers, Why: one.Why})
	}
	return errors.Join(printRecovered(out, lines, asJSON), printCounters(out, countersOf(done), asJSON), printThen(out, line.Then, asJSON))
}

// then are the commands that are to follow.
func (r *recovering) then(ctx context.Context, p *recovery.Plan) []string {
	var all []string
	for _, name := range p.LostPools {
		all = append(all, r.hints.compose("firn pool ensure "+phrase.ShellWord(name)))
	}
	if config, err := fromurl.PostgreSQL(r.url); strings.HasPrefix(r.url, "postgres") && err == nil && check.HasShards(ctx, config) {
		all = append(all, r.hints.compose("firn shard reopen SERVER"))
	}
	return all
}

// move accepts that the pools and the counters are in this store now.
func (r *recovering) move(ctx context.Context, cmd *cobra.Command, s store.Store, c *recovery.Contents) error {
	err := ui.PrintNote(cmd.ErrOrStderr(), `%s is accepted as the place of its pools and counters:
  - pools: %s. Series: %s. Nothing else changes, and ids and numbers start at once
  - if any process used the old store after the copy was made, ids and numbers repeat: then leave out --moved`, fromurl.Redact(r.url), phrase.List(poolNames(c)), phrase.List(c.Series()))
	if err == nil && !r.yes {
		err = ui.MustAsk(ctx, cmd, "Was the store moved on purpose, has nothing used the old one since the copy, and is the old one gone?",
			fmt.Sprintf("firn store recover%s --moved%s --yes", remedy.StoreFlag(r.url), r.numbers.flags()))
	}
	if err != nil {
		return err
	}
	done, err := recovery.AcceptMove(ctx, s)
	if err != nil {
		return err
	}
	var counters []acceptedLine
	for _, in := range done.Sequences {
		counters = append(counters, acceptedLine{in.Name, config.Sequence})
	}
	for _, in := range done.Documents {
		counters = append(counters, acceptedLine{in.Name, config.Document})
	}
	return printAccepted(cmd.OutOrStdout(), done.Pools, counters, wantsJSON(cmd))
}
