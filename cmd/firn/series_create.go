package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

func newSeriesCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create a series; without NAME, all of firn.yaml that the store lacks",
		Long: `Create a series that never existed: a sequence (1, 2, 3), or a document (texts with a date
and a counter). Only you know that it never existed: a store that has lost the series looks
the same, and a series that is created again repeats all that it gave out. A SQLite file
notices a loss by itself, so there the first number creates the series.

Run this once, in the step that creates the database. Never run it in the step that starts
a program, in an init container or an entrypoint: after the store was lost it would begin
the series again. The step that starts a program needs no command: where the series is
missing, the program fails and says so. To check before that: firn doctor, whose exit code
is 3 where the store does not have a series of firn.yaml. If the series is there already,
nothing changes, and the exit code is 1.

The settings are those of firn.yaml, or of the flags. For a sequence they are named as those
of CREATE SEQUENCE: --first is START, --max is MAXVALUE, --step is CACHE. A ticket of firn.yaml
is created on all of its stores, which must all answer. To continue a series of another
system: firn series raise.

Without NAME the command creates all series of firn.yaml that the store does not have.`,
		Example: `  firn series create orders --kind sequence
  firn series create orders --kind sequence --first 1000000 --step 500
  firn series create queue --kind sequence --order strict --max 999999
  firn series create invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh`,
		Args:              arguments(0, 1),
		ValidArgsFunction: completeSeries(dense...),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadSettings(cmd)
			switch {
			case err != nil:
				return err
			case len(args) == 0:
				return createAll(cmd, s)
			}
			d, err := s.newCounter(cmd, args[0])
			if err != nil {
				return err
			}
			err = d.create(cmd)
			if exists(err) {
				return seriesExists(fmt.Sprintf("the %s %s is", d.kind, d.name), "firn series show "+phrase.ShellWord(d.name))
			}
			return err
		},
	}
	cmd.Flags().String("kind", "", "the kind of a series that is not in firn.yaml: sequence or document (document with --pattern)")
	addSeries(cmd, kindSequence, kindDocument)
	if err := cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{kindSequence, kindDocument}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not there
	}
	addStore(cmd)
	for _, f := range createFlags {
		k := *seriesKeyNamed(f.name)
		k.flag, k.usage = f.value, f.usage
		cmd.Flags().Var(&seriesFlag{seriesKey: &k}, k.name, k.usage)
	}
	return cmd
}

// createFlags are the keys of a series that are flags where one is created only.
var createFlags = []struct{ name, value, usage string }{
	{"first", "N", "the first number, below which there is none (1)"},
	{"max", "N", "no number is above it (9223372036854775807)"},
	{"increment", "N", "from one number to the next (1)"},
	{"order", "strict", "strict: numbers increase over all processes, and each call waits for the store (free)"},
}

// newCounter is the series that a command is to create.
func (s *settings) newCounter(cmd *cobra.Command, name string) (*drawing, error) {
	if !isSeriesName(name) {
		return nil, ui.Bad("series %q: %s", name, seriesNameRule)
	}
	one, err := s.seriesNamed(name)
	if err != nil {
		return nil, err
	}
	d := &drawing{name: name, urls: []string{s.storeURL().text}, hints: hinter{cmd}, listed: one != nil}
	if d.kind, err = s.kindToCreate(name, one); err != nil {
		return nil, err
	}
	if err := s.strangeFlag(name, d.kind); err != nil {
		return nil, err
	}
	if err := s.countedDrawing(d, one); err != nil {
		return nil, err
	}
	for _, f := range createFlags {
		k, ok := cmd.Flags().Lookup(f.name).Value.(*seriesFlag)
		if !ok || !cmd.Flags().Changed(f.name) {
			continue
		}
		if err := k.set(&d.options, k.text); err != nil {
			return nil, valueError("--"+f.name, err)
		}
	}
	return d, d.check(map[string]string{})
}

// kindToCreate is the kind of firn.yaml, or of the flags.
func (s *settings) kindToCreate(name string, one *seriesConfig) (string, error) {
	said := s.value("kind", entry{}, "").text
	if said != "" && !slices.Contains(dense, said) {
		if said == kindFlake {
			return "", ui.Bad("--kind flake: a flake is not created: its ids come from the workers of a pool").Hint("firn pool create; then: firn next %s", phrase.ShellWord(name))
		}
		return "", valueError("--kind", checkKind(said))
	}
	pattern := s.value("pattern", entry{}, "").text != ""
	switch {
	case one != nil && one.kind.text == kindTicket && said == kindSequence:
		return kindTicket, nil
	case one != nil && said != "" && said != one.kind.text:
		return "", ui.Bad("--kind %s: series %s is of kind %s, says %s:%d", said, name, one.kind.text, s.file.path, one.kind.at.line)
	case one != nil && one.kind.text == kindFlake:
		return "", ui.Bad("series %s is of kind %s and is not created: its ids come from the workers of a pool", name, kindFlake).Hint("firn pool create; then: firn next %s", phrase.ShellWord(name))
	case one != nil:
		return one.kind.text, nil
	case said != "":
		return said, nil
	case pattern:
		return kindDocument, nil
	}
	return "", ui.Bad("of which kind is series %s? --kind is missing, and firn.yaml does not list the series", name).
		Hint("for numbers: firn series create %s --kind sequence; for texts: firn series create %s --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh", phrase.ShellWord(name), phrase.ShellWord(name))
}

// exists reports whether an error says that the series is there already.
func exists(err error) bool {
	return errors.As(err, new(*sequence.ExistsError)) || errors.As(err, new(*document.ExistsError))
}

// create creates the series in its stores, and says so.
func (d *drawing) create(cmd *cobra.Command) error {
	stores, closeStores, err := d.openStores(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err = d.mayBegin(cmd.Context(), stores); err == nil {
		err = d.createIn(cmd.Context(), stores)
	}
	switch err = errors.Join(err, closeStores()); {
	case exists(err):
		return err
	case err != nil:
		return d.explain(err)
	}
	text := ""
	if d.kind == kindDocument {
		text = ": " + d.options.document.Pattern
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "created the %s %s%s\n", d.kind, d.name, text)
	return err
}

// createIn creates the series in opened stores.
func (d *drawing) createIn(ctx context.Context, stores []store.Store) error {
	if d.kind != kindDocument {
		_, err := sequence.CreateAcross(ctx, stores, d.name, &d.options.sequence)
		return err
	}
	_, err := document.Create(ctx, stores[0], d.name, &d.options.document)
	return err
}

// mayBegin returns an error where one of the stores is a copy, or has a counter of the name that
// is of another kind.
func (d *drawing) mayBegin(ctx context.Context, stores []store.Store) error {
	for i, st := range stores {
		if f := poolFailure(checkPlace(ctx, st), poolPlace{url: storeText(d.urls[i])}); f != nil {
			return f
		}
		kinds := []string{d.kind}
		if d.kind != kindDocument {
			kinds = []string{kindSequence, kindTicket}
		}
		if err := otherKind(ctx, st, d.name, kinds...); err != nil {
			return err
		}
	}
	return nil
}

// seriesExists is the error of creating a series that is there, be it as it is to be: a
// create that may be repeated ends up in the step that starts a program.
func seriesExists(what, show string) error {
	return ui.Failed("%s there already", what).Hint("to see it: %s", show).
		Hint("a counter is created in the step that creates the database. A step that starts a program creates none: after the store was lost it would begin again at its first number, and repeat all that was given out. It may check instead: firn doctor, whose exit code is 3 where the store does not have a counter of firn.yaml")
}

// createAll creates the series of firn.yaml that their stores lack.
func createAll(cmd *cobra.Command, s *settings) error {
	var strange []string
	for _, name := range []string{"kind", "pattern", "zone", "first", "max", "increment", "order", "step"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			strange = append(strange, "--"+name)
		}
	}
	switch {
	case len(strange) > 0:
		return ui.Bad("%s is about one series, and NAME is missing", strange[0]).Hint("%s --help", cmd.CommandPath())
	case s.file == nil:
		return ui.Bad("there is no firn.yaml whose series could be created").Hint("to create one series: firn series create NAME --kind sequence")
	}
	var missing []*drawing
	counters := 0
	for i := range s.file.series {
		one := &s.file.series[i]
		if one.kind.text == kindFlake {
			continue
		}
		counters++
		d, err := s.newCounter(cmd, one.name.text)
		if err != nil {
			return err
		}
		lacks, err := d.isLacking(cmd)
		if err != nil {
			return err
		}
		if lacks {
			missing = append(missing, d)
		}
	}
	switch {
	case counters == 0:
		return ui.Bad("%s lists no series that counts", s.file.path).Hint("to create one series: firn series create NAME --kind sequence")
	case len(missing) == 0:
		return seriesExists(fmt.Sprintf("all %d series of %s that count are", counters, s.file.path), "firn series ls")
	}
	for _, d := range missing {
		if err := d.create(cmd); err != nil {
			return err
		}
	}
	return nil
}

// isLacking reports whether the stores of a series do not have it. It is an error if a store was
// recovered: the series may have existed, and would begin again.
func (d *drawing) isLacking(cmd *cobra.Command) (bool, error) {
	stores, closeStores, err := d.openStores(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return false, err
	}
	lacks, err := d.lackingIn(cmd.Context(), stores)
	return lacks, errors.Join(err, closeStores())
}

func (d *drawing) lackingIn(ctx context.Context, stores []store.Store) (bool, error) {
	if err := d.mayBegin(ctx, stores); err != nil {
		return false, err
	}
	for i, st := range stores {
		there, err := counterIn(ctx, st, d.name)
		if err != nil || there != nil {
			return false, err // of a ticket that one store has: to open it says what is wrong
		}
		recovered, err := wasRecovered(ctx, st)
		if err != nil {
			return false, err
		}
		if recovered {
			return false, maybeLost(open.Redact(storeText(d.urls[i])), d.name).
				Hint("only if it never existed: %s", strings.TrimSpace("firn series create "+phrase.ShellWord(d.name)))
		}
	}
	return true, nil
}
