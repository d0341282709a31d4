package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// readers are the commands that read their input for as long as there is any, and then compute.
// They hold nothing that would have to be given back.
var readers = []string{"firn decode", "firn backfill", "firn verify", "firn public encode"}

// lookers are the commands that change nothing.
var lookers = []string{
	"firn pool ls", "firn pool show", "firn worker ls", "firn series ls", "firn series show", "firn doctor",
	"firn config check", "firn config show", "firn version", "firn plan", "firn layout ls", "firn layout show", "firn public ls", "firn encode",
	"firn shard ls", "firn shard where", "firn shard status", "firn shard doctor", "firn shard sql", "firn help", "firn completion",
}

// untilSignal gives a command a context that the first signal ends, and says what was done by then.
func untilSignal(cmd *cobra.Command) {
	ctx, out := ui.WithWork(cmd.Context(), cmd.OutOrStdout())
	cmd.SetOut(out)
	ctx, _ = ui.UntilSignal(ctx) // its end is that of run
	cmd.SetContext(ctx)
	if slices.Contains(readers, cmd.CommandPath()) {
		cmd.SetIn(ui.Input{Reader: cmd.InOrStdin(), Context: ctx})
		go endReader(ctx, cmd)
	}
}

// endReader ends a command that does not end by itself soon after a signal: it waits for input that
// may never come, or computes.
func endReader(ctx context.Context, cmd *cobra.Command) {
	<-ctx.Done()
	time.Sleep(stuck)
	if signal := sayInterrupted(ctx, cmd); signal.Signal != 0 {
		os.Exit(128 + int(signal.Signal))
	}
}

// sayInterrupted says once what was done before a signal ended the command.
func sayInterrupted(ctx context.Context, cmd *cobra.Command) ui.Interrupted {
	signal, done := ui.InterruptedWork(ctx, func(lines int64) string {
		text := "nothing was printed"
		if lines > 0 {
			text = phrase.Counted(lines, "line was printed", "lines were printed")
		}
		if !slices.Contains(lookers, cmd.CommandPath()) {
			text += "; whether anything was changed is not known"
		}
		return text
	})
	if done != "" {
		ui.PrintInterrupted(cmd.ErrOrStderr(), done)
	}
	return signal
}
