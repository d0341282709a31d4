package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

func newPool() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pool",
		Aliases: []string{"pools"},
		Short:   "Create and look after the worker pools of a store",
		Long: `Create and look after the worker pools of a store. A pool is a set of worker numbers
with one layout. A process leases a worker of it and makes ids with that.

  Ids that must never be equal come from one pool of one store.

Most programs need one pool, default. Create it once, in the step that creates the
database, and never in the step that starts a program.`,
		Example: `  firn pool create --store postgres://app@db/app
  firn pool show`,
		RunE: needsCommand,
	}
	cmd.AddCommand(newPoolLs(), newPoolShow(), newPoolCreate(), newPoolEnsure(), newPoolSet())
	return cmd
}

// addPoolArgument makes FIRN_POOL count for a command whose argument is the pool.
func addPoolArgument(cmd *cobra.Command) {
	addPoolName(cmd)
	if err := cmd.Flags().MarkHidden("pool"); err != nil {
		panic(err) // the flag is not there
	}
}

// poolArgument is the pool of the argument, or else the one of the settings.
func poolArgument(cmd *cobra.Command, set *settings, args []string) (string, error) {
	if len(args) == 0 {
		name, _, err := set.Pool("")
		return name, err
	}
	if f := cmd.Flags().Lookup("pool"); saidBy(f) && f.Value.String() != args[0] {
		return "", ui.Bad("--pool %s and %s are two pools", f.Value, args[0])
	}
	return args[0], nil
}

func newPoolLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the pools of a store",
		Long: `List the pools of a store, with the workers of each. While firn pool set
is changing the range of a pool, the pool still reserves workers of its old range. HELD counts
the held workers of both ranges. UNUSABLE are workers that nobody holds, and whose ids lie
ahead of the clock: they can be taken again a little later. STATE is "other store" where the
pool was made in another store: this one is a copy, a restored dump, or was moved, and no
process takes ids from the pool here.

A store without a clock (etcd, ZooKeeper) cannot tell a worker that is held from one of a
process that died: there HELD is "up to" a number.`,
		Example: "  firn pool ls --store postgres://app@db/app",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, func(s store.Store) error {
				return listPools(cmd, s)
			})
		},
	}
	addStore(cmd)
	return cmd
}

func newPoolShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [POOL]",
		Short: "Show layout, workers in use, and how long ids continue without the store",
		Long: `Show what a store has of a pool: its layout, how many of its workers are held, free or
unusable for now, how long ids continue while the store is away, and when its ids start.`,
		Example: `  firn pool show
  firn pool show shop --json`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			name, err := poolArgument(cmd, set, args)
			if err != nil {
				return err
			}
			return withStore(cmd, func(s store.Store) error {
				line, err := lookAtPool(cmd.Context(), s, name)
				if err != nil {
					return err
				}
				return line.show(cmd.OutOrStdout(), wantsJSON(cmd))
			})
		},
	}
	addStore(cmd)
	addPoolArgument(cmd)
	return cmd
}

// A poolLine is a pool as --json prints it.
type poolLine struct {
	Pool     string `json:"pool"`
	ID       string `json:"id"`
	Layout   string `json:"layout"`
	Workers  string `json:"workers"`             // 0-255
	GivingUp string `json:"giving_up,omitempty"` // while pool set is under way

	Held          *int64 `json:"held,omitempty"`
	Free          *int64 `json:"free,omitempty"`
	Unusable      *int64 `json:"unusable,omitempty"`
	UnusableUntil string `json:"unusable_until,omitempty"` // the last of them
	Unknown       *int64 `json:"unknown,omitempty"`        // held, or left by a process that died: the store has no clock that tells

	Outage      float64 `json:"outage_seconds,omitempty"` // how long ids continue without the store, where a process asks for no other time
	OutageLimit float64 `json:"outage_limit_seconds"`     // the most that a process may ask for
	StartDelay  float64 `json:"start_delay_seconds,omitempty"`

	StartsAt  string   `json:"starts_at,omitempty"`
	MayRepeat []string `json:"may_repeat,omitempty"`
	Lossy     string   `json:"lossy,omitempty"`
	Store     string   `json:"store,omitempty"`      // that the pool was made in
	State     string   `json:"state,omitempty"`      // usable or other store, of a pool that is shown
	Here      string   `json:"this_store,omitempty"` // what the store says of itself, if that is not Store
	Created   *bool    `json:"created,omitempty"`    // by this command

	starts time.Time // zero: at once
	soon   time.Time // the last unusable worker can be taken
}

// The states of a pool.
const (
	poolUsable    = "usable"
	poolElsewhere = "other store"
)

// poolLineOf is what a pool's record says.
func poolLineOf(i pool.Info) poolLine {
	l := poolLine{
		Pool: i.Name, ID: i.ID, Layout: layoutName(i.Layout), Workers: remedy.Range(i), GivingUp: i.GivingUp,
		OutageLimit: i.OutageLimit.Seconds(), MayRepeat: i.MayRepeat, Lossy: i.Lossy, Store: i.Store,
	}
	if i.StartsAt.After(time.Now()) {
		l.starts, l.StartsAt = i.StartsAt, phrase.Instant(i.StartsAt)
	}
	return l
}

// lookAtPool reads a pool and its workers.
func lookAtPool(ctx context.Context, s store.Store, name string) (poolLine, error) {
	info, used, err := pool.Use(ctx, s, name, time.Now())
	if err != nil {
		return poolLine{}, beside.Crowded(ctx, s, err, &config.LeaseOptions{})
	}
	l := poolLineOf(info)
	l.standing(used)
	l.Held, l.Free, l.Unusable = &used.Held, &used.Free, &used.Unusable
	l.soon, l.UnusableUntil = used.UnusableUntil, phrase.Instant(used.UnusableUntil)
	if used.Unknown > 0 {
		l.Unknown = &used.Unknown
	}
	return l, nil
}

// standing says how long ids continue without the store, and whether this is the pool's store.
func (l *poolLine) standing(used pool.Usage) {
	l.Outage, l.StartDelay = used.Outage.Seconds(), used.StartDelay.Seconds()
	if l.State, l.Here = poolUsable, used.Elsewhere; l.Here != "" {
		l.State = poolElsewhere
	}
}

// listPools prints the pools of a store. One of which a record cannot be read hides no other.
func listPools(cmd *cobra.Command, s store.Store) error {
	ctx := cmd.Context()
	all, damaged, err := readSound(s, definition, func(s store.Store) ([]pool.Info, error) { return pool.List(ctx, s) })
	if err != nil {
		return err
	}
	lines := damagedPools(damaged)
	for _, info := range all {
		line, err := lookAtPool(ctx, s, info.Name)
		var bad *store.FormatError
		switch {
		case errors.As(err, &bad):
			damaged = append(damaged, bad)
			lines = append(lines, &damagedPool{Pool: info.Name, Error: phrase.Reason(bad)})
		case err != nil:
			return err
		default:
			lines = append(lines, &line)
		}
	}
	slices.SortFunc(lines, func(a, b poolRow) int { return phrase.CompareNames(a.name(), b.name()) })
	warnDamaged(cmd, damaged)
	header := []string{"POOL", "LAYOUT", "WORKERS", "HELD", "FREE", "UNUSABLE", "IDS START", "MAY REPEAT", "STATE"}
	return ui.Emit(cmd.OutOrStdout(), wantsJSON(cmd), header, lines, poolRow.row)
}

// A poolRow is a pool as pool ls prints it: an object with --json, or a row.
type poolRow interface {
	name() string
	row() []any
}

func (l *poolLine) name() string { return l.Pool }

func (l *poolLine) row() []any {
	workers := l.Workers
	if l.GivingUp != "" {
		workers += " (reserves " + l.GivingUp + ")"
	}
	held, starts, repeats := strconv.FormatInt(*l.Held, 10), "now", "-"
	if l.Unknown != nil {
		held = fmt.Sprintf("up to %d", *l.Unknown)
	}
	if l.StartsAt != "" {
		starts = l.StartsAt
	}
	if len(l.MayRepeat) > 0 {
		repeats = strings.Join(l.MayRepeat, ", ")
	}
	return []any{l.Pool, l.Layout, workers, held, *l.Free, *l.Unusable, starts, repeats, l.State}
}

// show prints all there is to say of a pool.
func (l *poolLine) show(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(l)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	say("pool", "%s", l.Pool)
	say("state", "%s", l.State)
	say("layout", "%s", l.Layout)
	held := fmt.Sprintf("%d held", *l.Held)
	if l.Unknown != nil {
		held = fmt.Sprintf("%d held or left by a process that died (this store has no clock that tells)", *l.Unknown)
	}
	unusable := ""
	if *l.Unusable > 0 {
		unusable = fmt.Sprintf(", %d unusable until %s", *l.Unusable, l.soon.UTC().Format("15:04:05Z"))
	}
	say("workers", "%s: %s, %d free%s", l.Workers, held, *l.Free, unusable)
	if l.GivingUp != "" {
		say("", "being changed from or to %s: repeat firn pool set", l.GivingUp)
	}
	more := ""
	if l.Outage >= min(pool.DefaultOutage.Seconds(), l.OutageLimit) { // less: on a lossy store nobody gets more
		more = fmt.Sprintf("; a process may ask for %s at most", secondsText(l.OutageLimit))
	}
	say("without the store", "ids continue for %s%s", secondsText(l.Outage), more)
	say("ids start", "%s", l.startText())
	if len(l.MayRepeat) > 0 {
		say("may repeat ids of", "%s", strings.Join(l.MayRepeat, ", "))
	}
	if l.Lossy != "" {
		say("lossy", "a process saw that the store can lose writes: %s", l.Lossy)
	}
	if l.Store != "" {
		say("made in", "%s", l.Store)
	}
	return w.Flush()
}

// startText says when ids start.
func (l *poolLine) startText() string {
	text := "now"
	if !l.starts.IsZero() {
		text = fmt.Sprintf("at %s, in %s", l.starts.UTC().Format(time.RFC3339), time.Until(l.starts).Round(time.Second))
	}
	if l.StartDelay > 0 {
		text += fmt.Sprintf("; each process waits %s when it starts, because the store can lose writes", secondsText(l.StartDelay))
	}
	return text
}

func secondsText(s float64) string { return phrase.Duration(time.Duration(s * float64(time.Second))) }

// storeName is the store of the settings, as people see it.
func (s *settings) storeName() string { return fromurl.Redact(whichstore.Text(s.StoreURL().Text)) }

// explainPool says what can be done about an error of package pool. Verb is the command
// that has failed.
func explainPool(err error, verb string) error {
	var f *ui.Failure
	var overlap *pool.OverlapError
	var option *pool.OptionError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &overlap):
		return overlapping(overlap, verb, nil)
	case errors.As(err, &option):
		return ui.Bad("--%w", ui.Rename(phrase.WithoutPackage(err.Error()), err))
	case errors.Is(err, pool.ErrBusy):
		return ui.Failed("%w", err).Hint("the same command again")
	}
	return err
}
