package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/backfill"
	"github.com/firn-id/firn/inspect"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// This file makes the ids of rows that come from elsewhere, with dates of their own:
// one for each line of a file of times, of a worker that nobody ever had.

func newBackfill() *cobra.Command {
	var o backfillOptions
	cmd := &cobra.Command{
		Use:   "backfill FILE --worker N",
		Short: "Make ids for rows that already have dates",
		Long: `Make an id for each line of FILE, in its order: the ids of rows that already have dates. A line
is a time: RFC 3339 (2026-01-01T00:00:00Z), a date (in UTC), or milliseconds since 1970. FILE may
be -, which is standard input.

The ids are of a worker that nobody ever had. The command takes that worker in the store, as a
lease would. No other process ever makes one of these ids: a process that leases the worker later
starts above them.

The command reads all lines before it prints the first id, and prints nothing if a line is at
fault. The same lines give the same ids, so you can run it again if it was interrupted; other
lines need another worker. It refuses a lossy store and a restored store.

With --store none the command claims no worker. Make sure yourself that nobody else uses the
worker, and that no row has one of its ids. A line needs some 100 bytes of memory.
docs/guides/past-ids.md has more.`,
		Example: `  firn backfill dates.txt --worker 1023 > ids.txt
  firn backfill dates.txt --worker 1023 --pool shop --store postgres://app@db/app > ids.txt`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.times = args[0]
			return o.run(cmd, cmd.Flags().Changed("worker"))
		},
	}
	cmd.Flags().Int64Var(&o.worker, "worker", 0, "a worker that nobody ever had")
	addStore(cmd)
	cmd.Flags().String("pool", "", "the pool of the worker (the only one of firn.yaml, or default)")
	addLayout(cmd, &o.layout, "the layout that the pool has to have: a preset or a spec; firn layout ls")
	cmd.Flags().Int64Var(&o.shard, "shard", 0, "the value of the layout's shard field")
	return cmd
}

// backfillOptions are the file of times, and what its ids are of.
type backfillOptions struct {
	times         string
	layout        layoutFlag
	worker, shard int64
}

// noStore is the --store of whoever keeps the worker aside by other means.
const noStore = "none"

// run prints the ids. All lines are read, and the worker is taken in the store, before the
// first id is printed.
func (o *backfillOptions) run(cmd *cobra.Command, hasWorker bool) error {
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	var claim func(*backfill.Backfill) error
	if set.StoreURL().Text == noStore {
		claim, err = o.unclaimed(hasWorker)
	} else {
		claim, err = o.claiming(cmd, set, hasWorker)
	}
	if err != nil {
		return err
	}
	b, err := backfill.New(o.layout.Layout, o.worker, o.shard)
	if err != nil {
		return asUsage(err)
	}
	if err := o.readTimes(cmd, b); err != nil || len(b.IDs()) == 0 {
		return err
	}
	ui.Tell(cmd.Context(), func() string {
		return "the worker may be taken, and not all ids were printed; the same lines give the same ids: run the command again"
	})
	if err := claim(b); err != nil {
		return err
	}
	return printIDs(cmd.OutOrStdout(), o.layout.Layout, b.IDs(), wantsJSON(cmd))
}

// unclaimed is for a worker that is kept aside by other means than a store.
func (o *backfillOptions) unclaimed(hasWorker bool) (func(*backfill.Backfill) error, error) {
	switch {
	case !o.layout.IsValid():
		return nil, ui.Bad("--layout is missing").Hint("to list the presets: firn layout ls")
	case !hasWorker && o.layout.Workers() > 1:
		return nil, ui.Bad("--worker is missing").Hint("one that nobody has or ever had")
	}
	return func(*backfill.Backfill) error { return nil }, nil
}

// claiming finds out the layout of the pool, and returns what takes the worker.
func (o *backfillOptions) claiming(cmd *cobra.Command, set *settings, hasWorker bool) (func(*backfill.Backfill) error, error) {
	name, said, err := set.Pool("")
	if err != nil {
		return nil, err
	}
	want := o.layout.Layout
	if said != nil && !want.IsValid() {
		want = said.Options.Layout
	}
	err = withStore(cmd, func(s store.Store) error {
		info, err := pool.Show(cmd.Context(), s, name)
		switch have := info.Layout; {
		case err != nil:
			return err
		case want.IsValid() && want != have:
			return &lease.LayoutError{Pool: name, Have: have.String(), Want: want.String()}
		case !hasWorker && have.Workers() > 1:
			return ui.Bad("--worker is missing").Hint("%s", neverHeld(cmd, s, name))
		}
		o.layout.Layout = info.Layout
		return nil
	})
	return func(b *backfill.Backfill) error {
		return withStore(cmd, func(s store.Store) error { return claimWorker(cmd, s, name, b) })
	}, err
}

// claimWorker takes the worker for the ids.
func claimWorker(cmd *cobra.Command, s store.Store, from string, b *backfill.Backfill) error {
	err := b.Reserve(cmd.Context(), s, from)
	var held *pool.BackfillError
	var out *lease.WorkerError
	switch {
	case errors.As(err, &out):
		return ui.Bad("%w", ui.Rename(outside(out, out), out)).Hint("%s", neverHeld(cmd, s, from))
	case errors.As(err, &held) && held.Name == "":
		return ui.Failed("%w", err).Hint("--store none, once no row has an id of that worker, and no process can take it: docs/guides/past-ids.md")
	case held != nil:
		return ui.Failed("%w", err).Hint("%s", neverHeld(cmd, s, from))
	}
	return err
}

// neverHeld says which worker to take.
func neverHeld(cmd *cobra.Command, s store.Store, from string) string {
	n, ok, err := pool.FreeWorker(cmd.Context(), s, from)
	switch {
	case err != nil:
		return "to see who had which: firn worker ls"
	case !ok:
		return fmt.Sprintf("no worker of pool %q is certain to be new: --store none takes one that firn worker ls shows in no pool, once no row has an id of it, and no process can take it: docs/guides/past-ids.md", from)
	}
	return fmt.Sprintf("nobody ever had worker %d, as far as the store knows: --worker %d", n, n)
}

// readTimes makes an id for each line of the file.
func (o *backfillOptions) readTimes(cmd *cobra.Command, b *backfill.Backfill) error {
	in, name := cmd.InOrStdin(), "standard input"
	if o.times != "-" {
		files, _, err := openInputs([]string{o.times})
		if err != nil {
			return err
		}
		defer closeFiles(files)
		in, name = ui.Input{Reader: files[0], Context: cmd.Context()}, o.times
	}
	var made atomic.Int64
	ui.Tell(cmd.Context(), func() string {
		return phrase.Counted(made.Load(), "line was read", "lines were read") + "; no worker was taken, and no id printed"
	})
	show := ui.ShowProgress(cmd.OutOrStdout(), cmd.ErrOrStderr(), 0, &made)
	defer show.Stop()
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		line, _, err := readLine(r)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return ui.Failed("%s:%d: %w", name, n, err)
		case err != nil && len(line) == 0:
			return nil
		}
		if f := addTime(b, string(trimEnd(line))); f != nil {
			f.Err = fmt.Errorf("%s:%d: %w; nothing was printed", name, n, f.Err)
			return f
		}
		made.Add(1)
	}
}

// addTime makes the id of a line, and says what to do where it cannot be made.
func addTime(b *backfill.Backfill, text string) *ui.Failure {
	at, ok := inspect.ParseTime(text)
	if !ok {
		return ui.Bad("%.60q is not a time", text).Hint("2012-03-03T13:01:20.453Z, 2012-03-03, or milliseconds since 1970")
	}
	_, err := b.Add(at)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*backfill.FutureError)):
		return ui.Bad("%.60s is still to come", text)
	case errors.As(err, new(*backfill.EarlyError)):
		return ui.Bad("%w", err).Hint("an id has no time before that, and a pool keeps its layout; where there are no ids yet, create one with an earlier epoch: docs/guides/past-ids.md")
	case errors.As(err, new(*backfill.FullError)):
		return ui.Bad("%w", err).Hint("finer times; or the lines from this one on in a file of their own, with another --worker")
	}
	return ui.Bad("%w", err)
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// printIDs prints ids, one a line.
func printIDs(out io.Writer, l firn.Layout, ids []firn.ID, asJSON bool) error {
	w := bufio.NewWriterSize(out, 64<<10)
	reader := inspect.NewDecoder(l)
	var r inspect.Reading
	var text, line []byte
	for _, id := range ids {
		text = strconv.AppendInt(text[:0], int64(id), 10)
		line = append(append(line[:0], text...), '\n')
		if asJSON {
			if err := reader.Decode(id, &r); err != nil {
				return err
			}
			line = append(r.AppendJSON(line[:0], text), '\n')
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
