package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
)

func newPoolSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [POOL] --workers A-B",
		Short: "Change the range of workers of a pool",
		Long: `Change the range of workers of a pool. The old range and the new one must have workers in
common. New workers must be of no other pool. A worker goes out only when no process
holds it and the clock has passed all its ids: until then the command exits with 1, says
who holds the worker and until when, and no other process takes one that goes out.`,
		Example: "  firn pool set shop --workers 0-1023",
		Args:    arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setPool(cmd, args)
		},
	}
	addStore(cmd)
	addPoolArgument(cmd)
	cmd.Flags().Var(&knobFlag{Key: config.KeyNamed(config.LeaseKeys, "workers")}, "workers", "the workers that the pool is to have, such as 0-1023")
	return cmd
}

func setPool(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	f := cmd.Flags().Lookup("workers")
	if !saidBy(f) { // what a variable says is for every pool
		return ui.Bad("--workers is missing").Hint("firn pool set POOL --workers A-B")
	}
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	name, err := poolArgument(cmd, set, args)
	if err != nil {
		return err
	}
	var o config.LeaseOptions
	if err := config.SetWorkers(&o, f.Value.String()); err != nil {
		return valueError("--workers", err)
	}
	s, err := open.Store(ctx, set.StoreURL().Text, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, _ := pool.Show(ctx, s, name) // SetWorkers has the error
	info, err := pool.SetWorkers(ctx, s, name, o.Workers.First, o.Workers.Last)
	var inUse *pool.InUseError
	if errors.As(err, &inUse) {
		return stillInUse(inUse, before, info, o.Workers.String())
	}
	if err != nil {
		o.Ranged = true
		return explainPool(beside.Crowded(ctx, s, err, &o), "set")
	}
	line := poolLineOf(info)
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(line)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "pool %q has workers %s\n", line.Pool, line.Workers)
	return err
}

// stillInUse says who keeps a pool from giving up a worker, what has changed already, how that ends
// and how it is taken back. Want is the range that the pool is to have.
func stillInUse(e *pool.InUseError, before, now pool.Info, want string) error {
	word := phrase.ShellWord(e.Pool)
	finish := fmt.Sprintf("firn pool set %s --workers %s", word, want)
	f := ui.Failed("%w", e).
		Hint("the pool has changed in part: it leases only workers %s from now on, and reserves %s", remedy.Range(now), now.GivingUp)
	if e.Name != "" {
		f.Hint("to finish it when %s, and every other process with a worker that goes out, has ended: %s", e.Name, finish).
			Hint("%s", ifDied(e))
	} else {
		f.Hint("to finish it at %s: %s", e.Until.UTC().Format(time.RFC3339), finish)
	}
	return f.Hint("to take the change back: firn pool set %s --workers %s", word, cmp.Or(before.GivingUp, remedy.Range(before)))
}

// ifDied says what to do about a worker that goes out if its holder has died. A release cannot help
// before the clock has passed the ids that the holder may have issued.
func ifDied(e *pool.InUseError) string {
	until := e.Until.UTC().Format(time.RFC3339)
	release := fmt.Sprintf("firn worker release %d --pool %s", e.Worker, phrase.ShellWord(e.Pool))
	switch {
	case e.Until.IsZero():
		return fmt.Sprintf("only if %s died, before that: %s", e.Name, release)
	case e.Outlasts():
		return fmt.Sprintf("only if %s died: %s. It may have issued ids up to %s, so the worker cannot go out before that", e.Name, release, until)
	}
	return fmt.Sprintf("if %s died, worker %d can go out at %s: it may have issued ids up to then, and nothing shortens that", e.Name, e.Worker, until)
}
