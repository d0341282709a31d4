package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/leash"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/variable"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// Exit codes of hold, besides COMMAND's own.
const (
	exitStopped   = 75 // no worker could be had or kept: EX_TEMPFAIL of sysexits.h
	exitCannotRun = 126
	exitNotFound  = 127
)

// How long before the horizon something is to have happened at the latest.
const (
	holdMargin = 500 * time.Millisecond // COMMAND's grace is over
	holdKill   = 250 * time.Millisecond // firn kills COMMAND
	holdLeash  = 100 * time.Millisecond // the kernel does, where it can
)

// holdLook is how long between two looks at the grant.
const holdLook = 100 * time.Millisecond

// holdKnobs are the settings of a pool that have a meaning for a generator that
// is not firn's.
var holdKnobs = []string{"layout", "worker", "renew", "ttl", "outage", "wait"}

func newRun() *cobra.Command {
	var o holdOptions
	cmd := &cobra.Command{
		Use:                   "run [FLAGS] -- COMMAND [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run a program with a worker number that no other process has",
		Long: `Run COMMAND, a program with an id generator of its own, with a worker number that no other
process has. firn leases the worker, waits until the clock has passed every id that earlier
holders may have issued, and tells COMMAND the number in its environment:

  FIRN_WORKER     the value of the layout's worker field, or where it has no field of
                  that name, the number of the worker
  FIRN_<FIELD>    the values of all worker fields, where the layout has several:
                  FIRN_DATACENTER and FIRN_WORKER in the layouts twitter and classic

While COMMAND runs the lease is extended. If that fails, or the worker is taken away,
COMMAND is stopped before the grant ends: SIGTERM, and SIGKILL after --grace. If the
store has forgotten the lease, or the system's clock has stepped by more than 5s, it
is killed at once. When COMMAND and its process group have ended the worker is given
back.

This is a fence, and not the proof that the ids of firn's own generators carry: those
are tested against the grant one by one, and here a process is stopped in time. That
is good while the system's clock is within 5s of the right time and the program's ids
carry that time, in ticks of the layout. On Linux the kernel stops COMMAND where firn
cannot: when firn is killed, or was stopped for too long. On other systems nobody does.

A pool whose ids start later is waited for. Where --wait is given, that is the most that
is waited for the pool and for a worker, before the exit code is 75. On a store that can
lose writes COMMAND starts only when the ids of the worker can: 13s after the lease, or 5m10s in
a pool that was used while the store was durable. --wait does not shorten that.

Standard input, output and error are COMMAND's. Signals are passed on to it. With
--json its start and its end are an object on standard error each.

The exit code is that of COMMAND, 128 and the signal if one has killed it, 75 if firn
could not get or keep a worker, 126 if COMMAND cannot be run, 127 if it is not there.`,
		Example: `  firn run --layout classic -- java -jar app.jar
  firn run --layout twitter --store sqlite:/var/lib/app/ids.db -- ./server`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return ui.Bad("there is no COMMAND to run").Hint("firn run -- COMMAND [ARG...]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.load(cmd); err != nil {
				return err
			}
			if status, ok := leash.UnderFirst(); ok {
				return ui.Exit(status)
			}
			warnOfVariables(cmd)
			return o.run(cmd.Context(), args, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows COMMAND is COMMAND's
	cmd.Flags().DurationVar(&o.grace, "grace", 2*time.Second, "how long COMMAND has to end when it has to be stopped")
	addStore(cmd)
	addHoldKnobs(cmd)
	return cmd
}

// addHoldKnobs adds --pool and holdKnobs.
func addHoldKnobs(cmd *cobra.Command) {
	var all cobra.Command
	addPool(&all)
	cmd.Flags().AddFlag(all.Flags().Lookup("pool"))
	for _, name := range holdKnobs {
		cmd.Flags().AddFlag(all.Flags().Lookup(name))
	}
}

type holdOptions struct {
	cmd     *cobra.Command
	grace   time.Duration
	leasing *config.Leasing
	json    bool
}

// load reads the settings.
func (o *holdOptions) load(cmd *cobra.Command) error {
	o.cmd = cmd
	s, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	if o.leasing, err = s.Leasing(""); err != nil {
		return err
	}
	for name := range workerVariables(o.leasing.Options.Layout, 0) {
		if slices.Contains(variableNames(), name) {
			return ui.Bad("COMMAND cannot be told the worker field of the layout: %s is a setting of firn", name).
				Hint("a layout whose worker fields have other names: firn layout ls")
		}
	}
	o.json = wantsJSON(cmd)
	opts := &o.leasing.Options
	opts.Lanes, opts.GrantFile = 1, ""                // of a pool that firn's own generators share
	outage := cmp.Or(opts.Outage, pool.DefaultOutage) // or less, as the pool will say
	if most := mostGrace(outage); o.grace < 0 || o.grace > most && cmd.Flags().Changed("grace") {
		return ui.Bad("--grace %s: with an outage budget of %s it is 0 to %s", o.grace, phrase.Duration(outage), most)
	}
	return nil
}

// run holds a worker while COMMAND runs.
func (o *holdOptions) run(ctx context.Context, args []string, errs io.Writer) (err error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return cannotRun(args[0], err)
	}
	signals := leash.Signals()
	asked, stop := ui.UntilSignal(ctx)
	defer stop()
	// Nobody may read standard error, and the program must not wait for that.
	made := func(path string, implicit bool) { go sayMade(errs)(path, implicit) }
	s, err := open.Store(asked, o.leasing.URL, made)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	// One that is away may be there in a while. What it has forgotten is for Hold to say.
	if _, err := s.Durability(asked); err != nil && !errors.As(err, new(*store.ForgotError)) {
		f := classify(err)
		f.Code = exitStopped
		return o.signalled(asked, f)
	}
	held, err := o.hold(asked, s, errs)
	if err != nil {
		return o.signalled(asked, noWorker(explainLease(o.leasing, err)))
	}
	h := &holding{cmd: o.cmd, held: held, args: args, errs: errs, json: o.json, store: whichstore.Text(o.leasing.URL), grace: min(o.grace, held.Grace()-holdMargin)}
	stop() // from now on signals are COMMAND's
	status, err := h.run(ctx, path, signals)
	if closeErr := held.Close(); closeErr != nil {
		ui.PrintWarning(errs, "the worker was not given back and falls free by itself: %s", phrase.WithoutPackage(closeErr.Error()))
	}
	if err == nil {
		h.tell(holdEvent{Event: "end", Status: &status, Stopped: h.why})
		if status != 0 {
			err = ui.Exit(status)
		}
	}
	return err
}

// signalled is an error from before COMMAND runs, where a signal may be its cause.
func (o *holdOptions) signalled(ctx context.Context, err error) error {
	err = ui.Signalled(ctx, err)
	if errors.As(err, new(ui.Exit)) {
		ui.PrintInterrupted(o.cmd.ErrOrStderr(), "COMMAND was not started")
	}
	return err
}

// hold takes a worker. It waits for a pool whose ids start later, unless somebody says how
// long to wait: whoever started this command would only start it again.
func (o *holdOptions) hold(ctx context.Context, s store.Store, errs io.Writer) (*lease.Worker, error) {
	opts, err := leaseoptions.Ready(ctx, s, o.leasing, hostname)
	if err != nil {
		return nil, cause.Learn(ctx, s, o.leasing, err)
	}
	opts.Logger = ui.Warnings(errs)
	if o.cmd.Flags().Changed("grace") {
		opts.Grace = o.grace + holdMargin
	}
	limited, began, told := o.leasing.From["wait"] != config.Default, time.Now(), time.Time{}
	limit := opts.Wait
	for {
		held, err := lease.Hold(ctx, s, &opts)
		var early *lease.NotYetError
		if !errors.As(err, &early) || limited && opts.Wait <= 1 {
			return held, cause.Learn(ctx, s, o.leasing, err)
		}
		if !early.StartsAt.Equal(told) {
			told = early.StartsAt
			o.waits(errs, early)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(startPause(early.StartsAt, limited, opts.Wait)):
		}
		if limited {
			opts.Wait = max(limit-time.Since(began), 1) // zero would be the default
		}
	}
}

// startPause is how long to wait before a pool is looked at again whose ids start later.
func startPause(starts time.Time, limited bool, left time.Duration) time.Duration {
	pause := min(max(time.Until(starts), holdLook), holdAgain)
	if limited {
		return min(pause, left)
	}
	return pause
}

// holdAgain is how often a pool is looked at whose ids start later, at least.
const holdAgain = 10 * time.Second

// waits says that COMMAND is not run yet, and when it will be.
func (o *holdOptions) waits(errs io.Writer, early *lease.NotYetError) {
	if o.json {
		h := &holding{errs: errs, json: true}
		h.tell(holdEvent{Event: "wait", Pool: early.Pool, StartsAt: phrase.Instant(early.StartsAt)})
		return
	}
	why := ""
	if early.Why != "" {
		why = ": " + early.Why
	}
	fmt.Fprintf(errs, "firn: waiting: the ids of pool %q start at %s, in %s%s\n",
		early.Pool, early.StartsAt.UTC().Format(time.RFC3339), time.Until(early.StartsAt).Round(time.Second), why)
}

// mostGrace is the longest grace with an outage budget.
func mostGrace(outage time.Duration) time.Duration {
	return max(lease.MostGrace(outage)-holdMargin, 0)
}

// cannotRun says why a command cannot be run, with the exit code of a shell.
func cannotRun(name string, err error) error {
	f := &ui.Failure{Code: exitCannotRun}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		f.Code = exitNotFound
	}
	var look *exec.Error
	var path *fs.PathError
	if errors.As(err, &look) {
		err = look.Err
	}
	if errors.As(err, &path) {
		err = path.Err
	}
	f.Err = fmt.Errorf("cannot run %s: %w", name, err)
	return f
}

// noWorker gives an error that may pass by itself the exit code that says so.
func noWorker(err error) error {
	var missing *lease.MissingPoolError
	var early *lease.NotYetError
	var full *lease.FullError
	var away *lease.AwayError
	var outage *lease.OutageError
	var late *lease.LateError
	var lost *lease.LostError
	if errors.As(err, &missing) || errors.As(err, &early) || errors.As(err, &full) || errors.As(err, &away) || errors.As(err, &outage) || errors.As(err, &late) || errors.As(err, &lost) {
		var f *ui.Failure
		if !errors.As(err, &f) {
			f = classify(err)
		}
		f.Code = exitStopped
		return f
	}
	return err
}

// workerVariables are what COMMAND finds in its environment.
func workerVariables(l firn.Layout, worker int64) map[string]string {
	variables := map[string]string{}
	set := func(name string, value int64) {
		variables[variable.Prefix+strings.ToUpper(name)] = strconv.FormatInt(value, 10)
	}
	set("worker", worker)
	if l.WorkerText(worker) == strconv.FormatInt(worker, 10) {
		return variables // one field is the worker
	}
	for name, value := range l.WorkerFields(worker) {
		set(name, value)
	}
	return variables
}
