package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"

	"github.com/spf13/cobra"
)

func newNext() *cobra.Command {
	var o nextOptions
	cmd := &cobra.Command{
		Use:   "next [SERIES]",
		Short: "Print new ids, or the next values of a series",
		Long: `Print new ids, numbers or texts, one a line. SERIES is a series of firn.yaml, if that
lists any. Without such a list, the store is asked first: where it has a counter of
that name, next draws from the counter. A name that is nearly that of a counter is refused.
So is every name that no counter has on a store that may have lost counters: it was recovered,
or has a pool of firn pool ensure.
Every other name is a flake of the pool default, unless --kind or --pattern says otherwise. A --kind that contradicts the store is an error.

  flake    ids with a time. A worker number is leased for the time this takes, so
           that nobody else on the same store makes the same ids. Ids of two
           series of one pool are never equal either
  sequence  dense numbers: 1, 2, 3. What it has reserved and not printed it hands
           back, if nobody has reserved more since. In firn.yaml, stores: [URL, URL]
           spreads it over several stores, each of which serves alone
  document   texts with a date and a counter: docs/guides/documents.md

Without --store that store is a file in your home directory: the ids are unique
among the processes of this user on this host that name no other store. In a container
there is no such default: each container would have its own file, and make the same ids.

An interrupt, or a reader that closes the pipe, ends it at once: whole lines have
been printed, the worker is given back, and the exit code is 130 (143 when
terminated), or 0 for the pipe. Every printed id is used up, read or not.`,
		Example: `  firn next
  firn next -n 1000 > ids.txt
  firn next orders --store sqlite:/var/lib/app/ids.db --json
  firn next orders --kind sequence
  firn next invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh
  firn next photo --kind flake --as opaque:photo --keys firn.keys`,
		Args:              arguments(0, 1),
		ValidArgsFunction: completeSeries(config.Kinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			if err := s.lookUp(cmd.Context(), strings.Join(args, "")); err != nil {
				return err
			}
			if o.drawing, err = s.drawing(strings.Join(args, "")); err != nil {
				return err
			}
			o.json = wantsJSON(cmd)
			if s.noCounter {
				o.drawing.warnOfNoCounter(cmd.ErrOrStderr())
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Int64VarP(&o.count, "count", "n", 1, "how many")
	cmd.Flags().Int64("shard", 0, "the value of the layout's shard field")
	addStore(cmd)
	addKind(cmd)
	addPool(cmd)
	addForm(cmd, "print the ids in this public form; firn public encode --help lists them")
	return cmd
}

type nextOptions struct {
	count   int64
	json    bool
	drawing *drawing
}

func (o *nextOptions) validate(args []string) error {
	switch {
	case len(args) == 1 && template.Is(args[0]):
		return ui.Bad("%s is a template, and each of its names has a counter of its own", args[0]).Hint("to draw from a name of it: firn next %s", anyName(args[0]))
	case len(args) == 1 && !config.IsSeriesName(args[0]):
		return ui.Bad("series %q: %s", args[0], config.SeriesNameRule)
	case o.count <= 0:
		return ui.Bad("-n %d: there is nothing to print", o.count).Hint("firn next -n 10")
	}
	return nil
}

// run opens the series, prints, and gives back what is left.
func (o *nextOptions) run(ctx context.Context, out, errs io.Writer) error {
	src, err := o.drawing.open(ctx, errs, o.count, o.json)
	if err != nil {
		return err
	}
	p := newPrinter(out, src, src.rate)
	ui.Tell(ctx, func() string {
		return fmt.Sprintf("%s of %s ids were written", phrase.Count(p.written.Load()), phrase.Count(o.count))
	})
	show := ui.ShowProgress(out, errs, o.count, &p.written)
	err = p.runUntil(ctx, o.count)
	show.Stop()
	if closeErr := src.close(); err == nil && closeErr != nil {
		ui.PrintWarning(errs, "%s: %s", o.drawing.Lost(), phrase.WithoutPackage(closeErr.Error()))
	}
	if err != nil {
		err = o.drawing.explain(err)
	}
	return err
}

// warnOfNoCounter says that the ids are no numbers of a counter. A store that was lost and begun
// again has no counter, and an id in place of an order's number is found too late. A script that
// means ids says so by --kind.
func (d *drawing) warnOfNoCounter(errs io.Writer) {
	name := phrase.ShellWord(d.Name)
	ui.PrintWarning(errs, "%s", d.hints.compose(fmt.Sprintf("%s is no counter of this store, and so this is an id of pool %s. If it was a counter: firn series create %s --kind sequence --first N (N above every number in use). If it has ids, say so: --kind flake", d.Name, d.Leasing.Pool, name)))
}
