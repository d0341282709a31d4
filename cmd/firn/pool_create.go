package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/copied"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

func newPoolCreate() *cobra.Command {
	var mayRepeat []string
	var yes bool
	cmd := &cobra.Command{
		Use:   "create [POOL]",
		Short: "Create a pool that never existed; ids start at once",
		Long: `Create a pool that never existed in this store, nor in a database that this one was
restored or copied from. Its ids start at once. If there was such a pool, the new one
makes its ids again, and nothing can notice that. So on a terminal the command asks, and
elsewhere it wants --new, which states that fact.

Run it in the step that creates the database. Never run it in the step that starts a
program, in an init container or an entrypoint: after the store was lost it would repeat
ids. firn pool ensure is safe there.

What no flag says comes from the pool's entry in firn.yaml: layout, workers, outage.`,
		Example: `  firn pool create
  firn pool create shop --workers 0-255 --new
  firn pool create mail --layout twitter --workers 512-1023`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return createPool(cmd, args, mayRepeat, yes, "create")
		},
	}
	addPoolOptions(cmd, &mayRepeat, &yes)
	cmd.Flags().Bool("new", false, "the pool never existed, here or in a database that this one was restored from")
	return cmd
}

func newPoolEnsure() *cobra.Command {
	var mayRepeat []string
	var yes bool
	cmd := &cobra.Command{
		Use:   "ensure [POOL]",
		Short: "Create a pool if it is missing; ids then start about five minutes later",
		Long: `Create a pool if it is missing. The store may have lost an earlier pool of that name; so
the ids of the new one start above all that a process may have made: after the longest
outage budget that a process may have had, 5m or --outage, and 10s more. A pool that
is there stays as it is, and the exit code is 0. If --layout, --workers or --outage ask for
something that this pool does not have, the command changes nothing and fails.

Before you type it, make sure that your other programs use this store: in another database the
ids are those of a second store, and nothing can notice that.

No counter of an earlier store is created again. If the store has nothing else when the pool is
created, firn series create asks from then on for each counter where it begins (--first, --after), or for --new if it never existed.`,
		Example: `  firn pool ensure
  firn pool ensure shop --workers 0-255 --outage 10m`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return createPool(cmd, args, mayRepeat, yes, "ensure")
		},
	}
	addPoolOptions(cmd, &mayRepeat, &yes)
	return cmd
}

// addPoolOptions adds the flags of a pool that is created.
func addPoolOptions(cmd *cobra.Command, mayRepeat *[]string, yes *bool) {
	addStore(cmd)
	addPoolArgument(cmd)
	for _, f := range []struct{ name, usage string }{
		{"layout", "the layout of the pool's ids, which never changes: a preset or a spec (" + layoutName(firn.Default()) + ")"},
		{"workers", "the pool's workers, such as 0-255 (all that the layout has)"},
		{"outage", "the longest time that any process of the pool may ever make ids while the store is away (" + phrase.Duration(pool.DefaultOutage) + ")"},
	} {
		cmd.Flags().Var(&knobFlag{Key: config.KeyNamed(config.LeaseKeys, f.name)}, f.name, f.usage)
	}
	if err := cmd.RegisterFlagCompletionFunc("layout", completeLayouts); err != nil {
		panic(err) // the flag is not there
	}
	cmd.Flags().StringArrayVar(mayRepeat, "may-repeat", nil, "a pool of this store whose ids may equal this one's, because they never meet in one table, queue or cache; may be given several times")
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask whether a layout is meant that ends in less than 10 years")
}

// createPool is pool create and pool ensure.
func createPool(cmd *cobra.Command, args, mayRepeat []string, yes bool, verb string) (err error) {
	ctx := cmd.Context()
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	name, err := poolArgument(cmd, set, args)
	if err != nil {
		return err
	}
	l, opts, err := set.creating(name)
	if err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("may-repeat"); saidBy(f) { // a claim is not taken from a variable
		opts.MayRepeat = mayRepeat
	}
	if f := cmd.Flags().Lookup("new"); f != nil && !saidBy(f) {
		room, err := alreadyThere(l, ctx, set, opts)
		if err == nil {
			err = askNew(ctx, cmd, l, set.storeName(), room, opts.MayRepeat)
		}
		if err != nil {
			return err
		}
	}
	s, err := storeFor(cmd, l, set.StoreURL().Text, name, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := copied.Check(ctx, s); err != nil {
		return explainPool(err, verb)
	}
	there, err := pool.Show(ctx, s, name)
	was := err == nil
	if !was {
		if err := checkNew(ctx, cmd, s, cmp.Or(opts.Layout, firn.Default()), yes, verb); err != nil {
			return err
		}
	}
	var info pool.Info
	if verb == "create" {
		info, err = pool.Create(ctx, s, name, opts)
	} else {
		info, err = pool.Ensure(ctx, s, name, opts)
	}
	if err != nil {
		if info.Name != "" { // as the error has it
			there = info
		}
		return explainCreating(l, ctx, s, err, verb, opts, there)
	}
	line := poolLineOf(info)
	line.Created = &info.Created
	_, used, err := pool.Use(ctx, s, name, time.Now())
	if err != nil {
		return err
	}
	line.standing(used)
	out := cmd.OutOrStdout()
	if verb == "ensure" && !wantsJSON(cmd) {
		out = cmd.ErrOrStderr() // it stands before a program, whose standard output is its own
	}
	if err := line.created(out, set.storeName(), wantsJSON(cmd)); err != nil || !info.Created || verb != "ensure" {
		return err
	}
	return warnOfCounters(ctx, s, cmd)
}

// checkNew checks what a new pool needs: a clock of which the store's does not differ, since else no process can lease a
// worker of the pool, and a layout that lasts.
func checkNew(ctx context.Context, cmd *cobra.Command, s store.Store, l firn.Layout, yes bool, verb string) error {
	if err := pool.CheckClock(ctx, s); err != nil {
		return explainPool(err, verb)
	}
	return askOfLayout(ctx, cmd, l, yes, "")
}

// storeFor opens the store for a new pool. Where no pool can have the options it returns the error of that, and
// creates no SQLite file.
func storeFor(cmd *cobra.Command, l *config.Leasing, url, name string, opts *pool.Options) (*fromurl.Store, error) {
	path, isFile := whichstore.File(url)
	if _, err := os.Stat(path); isFile && errors.Is(err, fs.ErrNotExist) {
		var option *pool.OptionError
		if errors.As(opts.Check(name), &option) {
			return nil, ui.Bad("%w", ui.Rename(blamed(l, option), option))
		}
	}
	return open.Store(cmd.Context(), url, sayMade(cmd.ErrOrStderr()))
}

// warnOfCounters says that a store in which a pool was created again has no counter of an earlier
// one: by the name of a lost counter firn next prints ids.
func warnOfCounters(ctx context.Context, s store.Store, cmd *cobra.Command) error {
	sequences, err := sequence.List(ctx, s)
	if err != nil {
		return err
	}
	documents, err := document.List(ctx, s)
	if err != nil || len(sequences)+len(documents) > 0 {
		return err
	}
	ui.PrintWarning(cmd.ErrOrStderr(), "%s", hinter{cmd: cmd}.compose("this store has no counter: counters of an earlier store are not in this one. If there were any, create each again before anything is started: "+
		"firn series create NAME --kind sequence --first N, with N above every number in use; firn series create NAME --pattern PATTERN --after TEXT, with PATTERN that of its programs, and TEXT the last one given out"))
	return nil
}

// explainCreating says what can be done about an error of creating a pool with options. There
// is the pool of that name that the store had, if any.
func explainCreating(l *config.Leasing, ctx context.Context, s store.Store, err error, verb string, opts *pool.Options, there pool.Info) error {
	var option *pool.OptionError
	var exists *pool.ExistsError
	var overlap *pool.OverlapError
	var remains *pool.RemainsError
	var layout *lease.LayoutError
	switch {
	case errors.As(err, &option):
		text := ui.Rename(blamed(l, option), err)
		if there.Name == "" {
			return ui.Bad("%w", text)
		}
		return asItIs(l, ui.Failed("%w", text), option, there, opts)
	case errors.As(err, &layout):
		return poolFailure(err, poolPlace{from: l.From})
	case errors.As(err, &exists):
		return alreadyExists(l, exists, opts)
	case errors.As(err, &remains):
		return ui.Failed("%w", err).Hint("%s", ensureLost(l.Pool, beside.LeftTo(ctx, s, l.Pool, opts.Layout), l.From))
	case errors.As(err, &overlap) && verb == "ensure":
		if left := beside.LeftTo(ctx, s, l.Pool, opts.Layout); left != "" && left != wanted(opts) {
			return ui.Failed("%w", ui.Rename(fmt.Sprintf("pool %q could repeat ids of pool %q: the layouts overlap and both would use workers %s", l.Pool, overlap.Other.Name, overlap.Same), err)).
				Hint("pool %s was lost: the store has records of its workers. Create it with the workers that it had, which the other pools leave to it: firn pool ensure %s --workers %s", l.Pool, phrase.ShellWord(l.Pool), left)
		}
	}
	if errors.As(err, &overlap) && opts.Workers == 0 && overlap.Layout != overlap.Other.Layout {
		if e := beside.CheckWhole(ctx, s, l.Pool, opts.Layout); e != nil && e.Free == "" && e.InOther != nil {
			return ui.Failed("%w", err).Hint("%s", remedy.Beside(e, l.Pool, l.From))
		}
	}
	if errors.As(err, &overlap) {
		e := beside.CheckOptions(ctx, s, l.Pool, opts)
		if e != nil && !hasRoom(e) && overlap.Layout != overlap.Other.Layout {
			e = beside.CheckOptions(ctx, s, l.Pool, &pool.Options{Layout: overlap.Other.Layout, MayRepeat: opts.MayRepeat})
		}
		return overlapping(overlap, verb, e)
	}
	return explainPool(err, verb)
}

// blamed is the text of an option that cannot be, with where it is from.
func blamed(l *config.Leasing, e *pool.OptionError) string {
	text := phrase.WithoutPackage(e.Error())
	if from := l.From[e.Option]; strings.HasPrefix(from, "--") && !strings.HasPrefix(text, e.Option) {
		return text
	}
	return config.Blame(l.From, e.Option, text)
}

// asItIs says what to ensure instead of something that a pool does not have.
func asItIs(l *config.Leasing, f *ui.Failure, e *pool.OptionError, there pool.Info, opts *pool.Options) error {
	name := phrase.ShellWord(there.Name)
	if e.Option == "workers" {
		f.Hint("to leave the pool as it is: firn pool ensure %s --workers %d-%d", name, there.First, there.Last)
		if opts.First+opts.Workers <= there.Layout.Workers() {
			f.Hint("to change its workers: firn pool set %s --workers %s", name, wanted(opts))
		}
		return f
	}
	if there.OutageLimit >= pool.DefaultOutage { // less is no option of ensure
		f.Hint("to leave the pool as it is: firn pool ensure %s --outage %s", name, phrase.Duration(there.OutageLimit))
	}
	return f.Hint("%s", shorterOutage(l, there.OutageLimit))
}

// exists says what can be done where a pool is there that was to be created. The pool that is
// ensured is the one that is there, whatever was asked for.
func alreadyExists(l *config.Leasing, e *pool.ExistsError, opts *pool.Options) error {
	name, f := phrase.ShellWord(l.Pool), ui.Failed("%w", e).Hint("to see it: firn pool show %s", phrase.ShellWord(l.Pool))
	same := ""
	if opts.Layout.IsValid() && opts.Layout != e.Info.Layout {
		same += " --layout " + phrase.ShellWord(layoutName(e.Info.Layout))
	}
	if have := remedy.Range(e.Info); opts.Workers > 0 && wanted(opts) != have {
		same += " --workers " + have
	}
	const rule = "a pool is created in the step that creates the database. In a step that starts a program, creating it makes the same ids again after the store was lost: there use nothing"
	switch limit := e.Info.OutageLimit; {
	case opts.Outage <= limit:
	case limit < pool.DefaultOutage: // less is no option of ensure
		return f.Hint("%s", rule)
	default:
		same += " --outage " + phrase.Duration(limit)
	}
	return f.Hint("%s, or: firn pool ensure %s%s", rule, name, same)
}

// wanted is the range of workers that options ask for; "" where they ask for none.
func wanted(o *pool.Options) string {
	if o.Workers == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", o.First, o.First+o.Workers-1)
}

// alreadyThere returns the error of creating a pool that is there, before anybody is asked
// whether it ever existed. Room says which pools its ids could repeat; nil: none. It makes no file, and
// leaves every other error to what follows.
func alreadyThere(l *config.Leasing, ctx context.Context, set *settings, opts *pool.Options) (room *beside.CrowdedError, err error) {
	s, failed := open.Store(ctx, set.StoreURL().Text, nil)
	if failed != nil {
		return nil, nil
	}
	defer s.Close()
	if copied.Check(ctx, s) != nil {
		return nil, nil
	}
	info, failed := pool.Show(ctx, s, l.Pool)
	if errors.As(failed, new(*lease.MissingPoolError)) {
		return beside.CheckOptions(ctx, s, l.Pool, opts), nil
	}
	if failed != nil {
		return nil, nil
	}
	return nil, alreadyExists(l, &pool.ExistsError{Info: info}, opts)
}

// askNew has a person state that the pool never existed. Where nobody can be asked, its hints have what a
// pool beside others needs too: without that each of them would be refused.
func askNew(ctx context.Context, cmd *cobra.Command, l *config.Leasing, at string, room *beside.CrowdedError, repeats []string) error {
	name, word := l.Pool, phrase.ShellWord(l.Pool)
	p := ui.PersonAt(cmd)
	if p == nil {
		f := ui.Bad("standard input is not a terminal, so nobody can say whether pool %q ever existed in %s", name, at)
		if room != nil {
			claim := claimed(append(slices.Clone(repeats), room.All...))
			return f.Hint("%s", remedy.Beside(room, name, l.From)).
				Hint("only if their ids never meet in one table, queue or cache: if %q may have existed: firn pool ensure %s --may-repeat %s%s. Only if no id was ever drawn from it, here or in a database that this one was restored from: firn pool create %s --may-repeat %s --new",
					name, word, claim, remedy.EnsureNote(l.From), word, claim)
		}
		return f.Hint("if it may have existed: firn pool ensure %s%s", word, remedy.EnsureNote(l.From)).
			Hint("only if it never existed there, nor in a database this one was restored from: firn pool create %s --new", word)
	}
	return p.Agree(ctx, fmt.Sprintf("Create pool %q in %s? Only if it never existed there, nor in a database this one was restored from", name, at))
}

// creating are the options of a pool that is created by flags, or else as the file says.
func (s *settings) creating(name string) (*config.Leasing, *pool.Options, error) {
	var o config.LeaseOptions
	said := s.PoolSaid(name)
	l := &config.Leasing{Pool: name, From: map[string]string{}}
	exact := false // the budget is said here and now
	for _, knob := range []string{"layout", "workers", "outage"} {
		k := config.KeyNamed(config.LeaseKeys, knob)
		v := s.Knob(*k, said)
		l.From[knob] = v.From
		if v.From == config.Default {
			continue
		}
		if err := k.Set(&o, v.Text); err != nil {
			return nil, nil, valueError(v.From, err)
		}
		exact = exact || knob == "outage" && strings.HasPrefix(v.From, "--")
	}
	o.Pool = name
	if f := l.Faults(o.Faults()); f != nil {
		return nil, nil, f
	}
	c := o.Creating()
	if exact {
		c.Outage = o.Outage
	}
	return l, c, nil
}

// created says what there is now.
func (l *poolLine) created(out io.Writer, at string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(l)
	}
	verb := "was there already"
	if *l.Created {
		verb = "created"
	}
	_, err := fmt.Fprintf(out, "pool %q %s in %s: layout %s, workers %s; ids start %s\n", l.Pool, verb, at, l.Layout, l.Workers, l.startText())
	return err
}
