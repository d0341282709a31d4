package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/version"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version; --store also prints those of running processes",
		Long: `Print the version of this program. With --store it also lists the processes that hold a
worker of a pool of that store, each with the version of firn that it runs. An older
version did not record its own, which shows as "-".`,
		Example: "  firn version --json\n  firn version --store postgres://app@db/app",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := printBuild(cmd.OutOrStdout(), version.Read(), wantsJSON(cmd)); err != nil || !saidBy(cmd.Flags().Lookup("store")) {
				return err
			}
			return withStore(cmd, func(s store.Store) error {
				lines, damaged, err := workerLines(cmd.Context(), s, "")
				if err != nil {
					return err
				}
				warnDamaged(cmd, damaged)
				return printRunning(cmd.OutOrStdout(), lines, wantsJSON(cmd))
			})
		},
	}
	addStore(cmd)
	return cmd
}

// printBuild prints what this binary was made from.
func printBuild(out io.Writer, b version.Build, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(b)
	}
	_, err := fmt.Fprintln(out, "firn", b)
	return err
}

// A runningLine is a process that holds a worker, as --json prints it.
type runningLine struct {
	Pool    string `json:"pool"`
	Worker  int64  `json:"worker"`
	Fields  fields `json:"fields,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version"`

	text string // the worker as people read it
}

// printRunning prints the processes that hold a worker, and those of which nobody can tell.
func printRunning(out io.Writer, workers []workerLine, asJSON bool) error {
	var lines []runningLine
	for _, w := range workers {
		if w.State == string(pool.WorkerHeld) || w.State == string(pool.WorkerUnknown) {
			lines = append(lines, runningLine{w.Pool, w.Worker, w.Fields, w.Name, cmp.Or(w.Version, "-"), w.text})
		}
	}
	if len(lines) == 0 && !asJSON {
		_, err := fmt.Fprintln(out, "no process holds a worker")
		return err
	}
	return ui.Emit(out, asJSON, []string{"POOL", "WORKER", "NAME", "VERSION"}, lines, func(l runningLine) []any {
		return []any{l.Pool, l.text, l.Name, l.Version}
	})
}
