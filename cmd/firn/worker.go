package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/copied"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

func newWorker() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "worker",
		Aliases: []string{"workers"},
		Short:   "Look after the workers of a pool",
		Example: "  firn worker ls",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newWorkerLs(), newWorkerRelease())
	return cmd
}

func newWorkerLs() *cobra.Command {
	var pool string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the workers of a pool: who holds each, and until when",
		Long: `List the workers that were ever held, of one pool, or without --pool of all pools of the
store: who holds each or held it last, with which version of firn, when it falls free if its holder does not write
again, and its horizon, the last instant of which it may have issued ids. The next holder
of the worker starts above that. A worker that nobody holds is free; it is unusable while its
horizon is ahead. Where the layout has several worker fields, as twitter has a datacenter and a worker,
a worker is written as their values: 3/7. --json has its number and its fields.

A store without a clock (etcd, ZooKeeper) does not record when a holder last wrote. There
the state is unknown for every worker that was not given back, also if its holder died: a
process that wants the worker takes it after it has seen no write for its time to live.`,
		Example: `  firn worker ls
  firn worker ls --pool shop --store sqlite:/var/lib/app/ids.db --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, func(s store.Store) error {
				return listWorkers(cmd, s, pool)
			})
		},
	}
	addStore(cmd)
	cmd.Flags().StringVar(&pool, "pool", "", "only the workers of this pool")
	return cmd
}

func newWorkerRelease() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "release N",
		Short: "Take a worker from a process that has ended",
		Long: `Take worker N from its holder, so that another process does not have to wait for the end of its
time to live. Where the store says that the worker is held, the command asks whether the holder has
ended: one that is alive loses the worker, and makes no ids until it has another. Nothing repeats:
the next holder starts above the horizon, the last instant of which the last holder may have issued
ids. A horizon that is ahead stays, for up to the outage budget (5 min): no process can use the
worker before, and the command says until when.`,
		Example: "  firn worker release 7 --pool shop",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, err := config.ParseWorker(args[0])
			if err != nil {
				return ui.Bad("%q is not the number of a worker", args[0]).Hint("to list them: firn worker ls")
			}
			pool, err := poolInForce(cmd)
			if err != nil {
				return err
			}
			return withStore(cmd, func(s store.Store) error {
				return releaseWorker(cmd, s, pool, worker, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: the holder has ended, or may lose the worker")
	addStore(cmd)
	addPoolName(cmd)
	return cmd
}

// withStore calls f with the store of --store, which is there already. It warns where the
// store is a copy of another: f may look, and what it may not change it is refused.
func withStore(cmd *cobra.Command, f func(store.Store) error) error {
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	s, err := open.Store(cmd.Context(), set.StoreURL().Text, nil)
	if err != nil {
		return err
	}
	if err = f(s); err == nil {
		warnOfCopy(cmd, s, whichstore.Text(set.StoreURL().Text))
	}
	return errors.Join(err, s.Close())
}

// warnOfCopy warns where a store is a copy of another, and says what to do.
func warnOfCopy(cmd *cobra.Command, s store.Store, at string) {
	var other *store.OtherStoreError
	if err := copied.Check(cmd.Context(), s); !errors.As(err, &other) {
		return
	}
	f := otherStore(other, other, at)
	ui.WarnHinting(cmd.ErrOrStderr(), hinter{cmd: cmd}.lines(f), "%s", f)
}

// poolInForce is the pool of --pool, the only one of firn.yaml, or the default.
func poolInForce(cmd *cobra.Command) (string, error) {
	set, err := loadSettings(cmd)
	if err != nil {
		return "", err
	}
	name, _, err := set.Pool("")
	return name, err
}

// A workerLine is a worker as --json prints it.
type workerLine struct {
	Pool    string  `json:"pool"`
	Worker  int64   `json:"worker"`
	Fields  fields  `json:"fields,omitempty"`
	State   string  `json:"state"`             // held, free, unusable or unknown
	Name    string  `json:"name"`              // of its holder, or of its last
	Version string  `json:"version,omitempty"` // of firn in that process
	Term    uint64  `json:"term"`
	Free    float64 `json:"free_in_seconds,omitempty"` // of one that is held or unusable
	Horizon string  `json:"horizon"`
	Written string  `json:"written,omitempty"`
	Error   string  `json:"error,omitempty"` // of one whose record cannot be read

	text string // the worker as people read it
	free time.Duration
}

// fields are the values of a worker's fields, where the layout has several.
type fields map[string]int64

func workerFields(l firn.Layout, worker int64) fields {
	if all := maps.Collect(l.WorkerFields(worker)); len(all) > 1 {
		return all
	}
	return nil
}

// workerLines are the workers of a pool, or of all pools of a store.
func workerLines(ctx context.Context, s store.Store, name string) (lines []workerLine, damaged []*store.FormatError, err error) {
	names := []string{name}
	if name == "" {
		var all []pool.Info
		all, damaged, err = readSound(s, definition, func(s store.Store) ([]pool.Info, error) { return pool.List(ctx, s) })
		if err != nil {
			return nil, nil, err
		}
		names = nil
		for _, info := range all {
			names = append(names, info.Name)
		}
		slices.SortFunc(names, phrase.CompareNames)
	}
	same := func(key string) string { return key }
	for _, name := range names {
		workers, bad, err := readSound(s, same, func(s store.Store) ([]pool.Worker, error) { return pool.Workers(ctx, s, name) })
		if err != nil {
			return nil, nil, err
		}
		for _, one := range bad {
			worker, _ := strconv.ParseInt(lastOf(one.Key), 10, 64)
			lines = append(lines, workerLine{Pool: name, Worker: worker, State: "damaged", Name: "-", Error: phrase.Reason(one), Horizon: "-", text: lastOf(one.Key)})
		}
		damaged = append(damaged, bad...)
		for _, v := range workers {
			lines = append(lines, workerLine{
				Pool: name, Worker: v.Worker, Fields: workerFields(v.Layout, v.Worker), State: string(v.State), Name: v.Name, Version: v.Version, Term: v.Term,
				Free: v.Free.Seconds(), Horizon: phrase.Instant(v.Horizon), Written: phrase.Instant(v.Written),
				text: v.Layout.WorkerText(v.Worker), free: v.Free,
			})
		}
	}
	return lines, damaged, nil
}

func listWorkers(cmd *cobra.Command, s store.Store, name string) error {
	out, asJSON := cmd.OutOrStdout(), wantsJSON(cmd)
	lines, damaged, err := workerLines(cmd.Context(), s, name)
	if err != nil {
		return err
	}
	warnDamaged(cmd, damaged)
	var rows []poolRow
	for _, bad := range damaged {
		if bad.Key == definition(bad.Key) { // a whole pool
			rows = append(rows, &damagedWorkers{damagedPool{lastOf(bad.Key), phrase.Reason(bad)}})
		}
	}
	for i := range lines {
		rows = append(rows, &lines[i])
	}
	slices.SortStableFunc(rows, func(a, b poolRow) int { return phrase.CompareNames(a.name(), b.name()) })
	header := []string{"POOL", "WORKER", "STATE", "NAME", "VERSION", "TERM", "FREE IN", "HORIZON"}
	return ui.Emit(out, asJSON, header, rows, poolRow.row)
}

func (l *workerLine) name() string { return l.Pool }

func (l *workerLine) row() []any {
	free := "-"
	if l.free > 0 {
		free = l.free.Round(time.Second).String()
	}
	return []any{l.Pool, l.text, l.State, l.Name, cmp.Or(l.Version, "-"), l.Term, free, l.Horizon}
}

// damagedWorkers are those of a pool whose record cannot be read.
type damagedWorkers struct{ damagedPool }

func (l *damagedWorkers) row() []any { return []any{l.Pool, "-", "damaged", "-", "-", "-", "-", "-"} }

func releaseWorker(cmd *cobra.Command, s store.Store, name string, values []int64, yes bool) error {
	ctx := cmd.Context()
	info, err := pool.Show(ctx, s, name)
	if err != nil {
		return err
	}
	number, err := info.Layout.JoinWorker(values...)
	if err != nil {
		return ui.Bad("%w", err).Hint("to list them: firn worker ls")
	}
	workers, err := pool.Workers(ctx, s, name)
	if err != nil {
		return err
	}
	worker := info.Layout.WorkerText(number)
	i := slices.IndexFunc(workers, func(w pool.Worker) bool { return w.Worker == number })
	if i < 0 {
		return ui.Bad("worker %s of pool %s was never held", worker, name).Hint("firn worker ls --pool %s", phrase.ShellWord(name))
	}
	if workers[i].State == pool.WorkerHeld && !yes {
		question := fmt.Sprintf("worker %s of pool %s is held by %s. Has that process ended? If not, it loses the worker and makes no ids until it has another.", worker, name, workers[i].Name)
		if err := ui.MustAsk(ctx, cmd, question, fmt.Sprintf("firn worker release %s --pool %s --yes", worker, phrase.ShellWord(name))); err != nil {
			return err
		}
	}
	switch err := pool.Release(ctx, s, name, number); {
	case errors.Is(err, store.ErrConflict):
		return ui.Failed("worker %s of pool %s is alive: its holder, %s, has just written", worker, name, workers[i].Name).
			Hint("stop its holder, or try again to take it away all the same")
	case err != nil:
		return err
	}
	return tellReleased(cmd, s, name, workers[i])
}

// tellReleased says that a worker was released, and until when no process can use it.
func tellReleased(cmd *cobra.Command, s store.Store, name string, was pool.Worker) error {
	workers, err := pool.Workers(cmd.Context(), s, name)
	if err != nil {
		return err
	}
	var until time.Time
	for _, w := range workers {
		if w.Worker == was.Worker && w.State == pool.WorkerUnusable {
			until = w.Horizon
		}
	}
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Pool     string `json:"pool"`
			Worker   int64  `json:"worker"`
			Fields   fields `json:"fields,omitempty"`
			Released bool   `json:"released"`
			Name     string `json:"name"`
			Until    string `json:"unusable_until,omitempty"`
		}{name, was.Worker, workerFields(was.Layout, was.Worker), true, was.Name, phrase.Instant(until)})
	}
	state := fmt.Sprintf("is free; it was last held by %s", was.Name)
	if !until.IsZero() {
		state = fmt.Sprintf("is released; it cannot be used before %s, because %s may have issued ids up to then", until.UTC().Format(time.RFC3339), was.Name)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "worker %s of pool %s %s\n", was.Layout.WorkerText(was.Worker), name, phrase.Printable(state))
	return err
}
