package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/copied"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

const seriesCreateHelp = `Create a series that never existed: a sequence (1, 2, 3), or a document (texts with a date
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
of CREATE SEQUENCE: --first is START, --max is MAXVALUE, --cache is CACHE. A sequence of firn.yaml
is created on all of its stores, which must all answer. To continue a series of another
system: firn series raise.

A store that was recovered, or has a pool of firn pool ensure, may have lost the series. There say where it begins, by --first N or
--after TEXT, or that it never existed, by --new. --after continues only the date of its TEXT,
so a TEXT of a later date than today's is refused: create the document after the last text of
today or before, then continue the later date by firn series raise. Of a template TEXT is the one with
the highest count that any name gave out: each name begins above that count. A document whose texts could equal those of
another document of the store is refused, unless --may-repeat NAME says that they never meet.

Without NAME the command creates all series of firn.yaml that the store does not have. It creates
none if one of them may be a renamed or mistyped counter of the store. Create that one by its NAME.

A NAME such as 'bill:*' is a template: each name that a client asks for, such as bill:42, has a
counter of its own, and at most --names of them.`

func newSeriesCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create a series; without NAME, all of firn.yaml that the store lacks",
		Long:  seriesCreateHelp,
		Example: `  firn series create orders --kind sequence
  firn series create orders --kind sequence --first 1000000 --cache 500
  firn series create queue --kind sequence --order strict --max 999999
  firn series create invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh
  firn series create 'user:*' --pattern '{1+}'`,
		Args:              arguments(0, 1),
		ValidArgsFunction: completeSeries(countingKinds...),
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
				return d.thereAlready(err)
			}
			return err
		},
	}
	cmd.Flags().String("kind", "", "the kind of a series that is not in firn.yaml: sequence or document (document with --pattern)")
	addSeries(cmd, config.Sequence, config.Document)
	if err := cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{config.Sequence, config.Document}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not there
	}
	addStore(cmd)
	cmd.Flags().Bool("new", false, "on a store that may have lost the series: no series of this name ever existed")
	cmd.Flags().String("after", "", "of a document: the last text of today, or of the latest date before, above which its counter begins")
	cmd.Flags().StringArray("may-repeat", nil, "of a document: `NAME` of another document of this store whose texts may equal this one's, because they never meet in one table, queue or cache; may be given several times")
	for _, f := range createFlags {
		k := *config.KeyNamed(config.CounterKeys, f.name)
		k.Value, k.Usage = f.value, f.usage
		cmd.Flags().Var(&seriesFlag{Key: &k}, k.Name, k.Usage)
	}
	return cmd
}

// createFlags are the keys of a series that are flags where one is created only.
var createFlags = []struct{ name, value, usage string }{
	{"first", "N", "the first number (1)"},
	{"max", "N", "no number is above it (9223372036854775807)"},
	{"increment", "N", "from one number to the next (1)"},
	{"names", "N", "of a template, such as bill:*: how many names it has at most (1000)"},
	{"order", "strict", "strict: numbers increase over all processes, and each call waits for the store (free)"},
}

// newCounter is the series that a command is to create.
func (s *settings) newCounter(cmd *cobra.Command, name string) (*drawing, error) {
	if !template.Is(name) && !config.IsSeriesName(name) {
		return nil, ui.Bad("series %q: %s", name, config.SeriesNameRule)
	}
	one, err := s.SeriesNamed(name)
	if err != nil {
		return nil, err
	}
	if one != nil && one.Name.Text != name {
		return nil, ui.Bad("%s is a name of the template %s, and begins with its first text: firn.yaml lists the template, which is created", name, one.Name.Text).
			Hint("to create the template: firn series create %s", phrase.ShellWord(one.Name.Text)).
			Hint("to continue the name above a text: firn series raise %s TEXT", phrase.ShellWord(name))
	}
	d := &drawing{&config.Series{Name: name, URLs: []string{s.StoreURL().Text}, Listed: one != nil}, hinter{cmd: cmd}}
	if d.Kind, err = s.kindToCreate(name, one); err != nil {
		return nil, err
	}
	if template.Is(name) && d.Kind != config.Document {
		return nil, ui.Bad("%s is the name of a template, and a template is of kind document, not %s", name, d.Kind).
			HintOtherKind("if no name of it ever gave a number: firn series create %s --pattern '{1+}', for numbers 1, 2, 3 of each name; else the same with --after N, with N the highest number that any name gave", phrase.ShellWord(name))
	}
	if err := s.strangeFlag(name, d.Kind); err != nil {
		return nil, err
	}
	if err := d.onlyDocuments(); err != nil {
		return nil, err
	}
	if err := s.Counted(d.Series, one, nil); err != nil {
		return nil, err
	}
	for _, f := range createFlags {
		k, ok := cmd.Flags().Lookup(f.name).Value.(*seriesFlag)
		if !ok || !cmd.Flags().Changed(f.name) {
			continue
		}
		if err := k.Key.Set(&d.Options, k.text); err != nil {
			return nil, valueError("--"+f.name, err)
		}
	}
	return d, d.Check()
}

// onlyDocuments refuses flags that say something of texts, where the series has none.
func (d *drawing) onlyDocuments() error {
	if d.Kind == config.Document {
		return nil
	}
	what := seriesText(d.Name, d.Kind)
	if f := d.hints.cmd.Flags().Lookup("after"); saidBy(f) {
		first := "--first N, with N above every number in use"
		if n, err := strconv.ParseInt(f.Value.String(), 10, 64); err == nil && n > 0 && n < math.MaxInt64 {
			first = fmt.Sprintf("--first %d", n+1)
		}
		return ui.Bad("--after is for series of kind %s, and %s", config.Document, what).Hint("to continue above the last number: %s", first)
	}
	if saidBy(d.hints.cmd.Flags().Lookup("may-repeat")) {
		return ui.Bad("--may-repeat is for series of kind %s, and %s", config.Document, what)
	}
	return nil
}

// kindToCreate is the kind of firn.yaml, or of the flags.
func (s *settings) kindToCreate(name string, one *config.Written) (string, error) {
	kind, _ := s.Said("kind")
	said := kind.Text
	switch {
	case said == config.Flake:
		return "", ui.Bad("--kind flake: a flake is not created: its ids come from the workers of a pool").Hint("firn pool create; then: firn next %s", phrase.ShellWord(name))
	case said != "" && !slices.Contains(countingKinds, said):
		_, err := s.Kind(name, nil) // which says what kinds there are
		return "", err
	}
	_, pattern := s.Said("pattern")
	switch {
	case one != nil && said != "" && said != one.Kind.Text:
		return "", ui.Bad("--kind %s: series %s is of kind %s, says %s:%d", said, name, one.Kind.Text, s.File.Path, one.Kind.At.Line)
	case one != nil && one.Kind.Text == config.Flake:
		return "", ui.Bad("series %s is of kind %s and is not created: its ids come from the workers of a pool", name, config.Flake).Hint("firn pool create; then: firn next %s", phrase.ShellWord(name))
	case one != nil:
		return one.Kind.Text, nil
	case said != "":
		return said, nil
	case pattern:
		return config.Document, nil
	}
	f := ui.Bad("of which kind is series %s? --kind is missing, and firn.yaml does not list the series", name)
	texts := fmt.Sprintf("firn series create %s --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh", phrase.ShellWord(name))
	if saidBy(s.cmd.Flags().Lookup("after")) {
		return "", f.Hint("for texts, with your pattern and zone: %s", texts)
	}
	return "", f.Hint("for numbers: firn series create %s --kind sequence; for texts, with your pattern and zone: %s", phrase.ShellWord(name), texts)
}

// exists reports whether an error says that the series is there already.
func exists(err error) bool {
	return errors.As(err, new(*sequence.ExistsError)) || errors.As(err, new(*document.ExistsError))
}

// create creates the series in its stores, and says so.
func (d *drawing) create(cmd *cobra.Command) error {
	stores, closeStores, err := d.openToCreate(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err = d.mayBegin(cmd.Context(), stores); err == nil {
		err = d.claim(cmd, stores)
	}
	if err == nil {
		err = d.createIn(cmd.Context(), stores)
	}
	switch err = errors.Join(err, closeStores()); {
	case exists(err):
		return err
	case err != nil:
		return d.explain(err)
	}
	text := ""
	if d.Kind == config.Document {
		text = ": " + d.Options.Document.Pattern
	}
	return ui.PrintNote(cmd.ErrOrStderr(), "created the %s %s%s", d.Kind, d.Name, text)
}

// openToCreate opens the stores in which a series will be created. Where one store has the ticket
// already, the file of another that is not there was moved or lost: none is made in its place.
func (d *drawing) openToCreate(ctx context.Context, errs io.Writer) ([]store.Store, func() error, error) {
	if len(d.URLs) > 1 {
		for _, url := range d.URLs {
			if d.isIn(ctx, url) {
				return d.openStores(ctx, nil)
			}
		}
	}
	return d.openStores(ctx, sayMade(errs))
}

// isIn reports whether a store is there and has the series, as far as it can be read.
func (d *drawing) isIn(ctx context.Context, url string) bool {
	st, err := open.Store(ctx, url, nil)
	if err != nil {
		return false // opening it tells
	}
	defer st.Close()
	there, err := countername.Counter(ctx, st, d.Name)
	return err == nil && there != nil
}

// claim takes over what only the person who creates the series knows. No variable claims it.
func (d *drawing) claim(cmd *cobra.Command, stores []store.Store) error {
	isNew, err := d.mayBeNew(cmd, stores)
	if err != nil {
		return err
	}
	d.Options.Sequence.New, d.Options.Document.New = isNew, isNew
	if f := cmd.Flags().Lookup("after"); saidBy(f) {
		d.Options.Document.After = f.Value.String()
	}
	if saidBy(cmd.Flags().Lookup("may-repeat")) {
		d.Options.Document.MayEqual, err = cmd.Flags().GetStringArray("may-repeat")
	}
	return err
}

// createIn creates the series in opened stores.
func (d *drawing) createIn(ctx context.Context, stores []store.Store) error {
	if d.Kind != config.Document {
		_, err := sequence.CreateAcross(ctx, stores, d.Name, &d.Options.Sequence)
		return err
	}
	_, err := document.Create(ctx, stores[0], d.Name, &d.Options.Document)
	return err
}

// mayBegin returns an error where one of the stores is a copy, or has a counter of the name that
// is of another kind.
func (d *drawing) mayBegin(ctx context.Context, stores []store.Store) error {
	for i, st := range stores {
		if f := poolFailure(copied.Check(ctx, st), poolPlace{url: whichstore.Text(d.URLs[i])}); f != nil {
			return f
		}
		if err := d.otherKind(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// thereAlready is the error of creating a series that is there, and says where it differs.
func (d *drawing) thereAlready(err error) error {
	var document *document.ExistsError
	if !errors.As(err, &document) || document.Info.Pattern == d.Options.Document.Pattern {
		text := fmt.Sprintf("the %s %s is there already", d.Kind, d.Name)
		return seriesExists(ui.Rename(text, err), "firn series show "+phrase.ShellWord(d.Name))
	}
	text := fmt.Sprintf("the document %s is there already, with the pattern %s, not %s", d.Name, document.Info.Pattern, d.Options.Document.Pattern)
	f := ui.Failed("%w", ui.Rename(text, err))
	if d.Listed {
		f.Hint("to draw from it: write pattern: %q for %s in firn.yaml", document.Info.Pattern, d.Name)
	} else {
		f.HintOtherKind("to draw from it: firn next %s", phrase.ShellWord(d.Name))
	}
	return f.Hint("to have texts of another pattern, give the series another name. In the pattern of a document that is there only the width of the counter can change: firn series set --help")
}

// seriesExists is the error of creating a series that is there, be it as it is to be: a
// create that may be repeated ends up in the step that starts a program.
func seriesExists(err error, show string) error {
	return ui.Failed("%w", err).Hint("to see it: %s", show).
		Hint("a counter is created in the step that creates the database. A step that starts a program creates none: after the store was lost it would begin again at its first number, and repeat all that was given out. It may check instead: firn doctor, whose exit code is 3 where the store does not have a counter of firn.yaml")
}

// createAll creates the series of firn.yaml that their stores lack.
func createAll(cmd *cobra.Command, s *settings) error {
	var strange []string
	for _, name := range []string{"kind", "pattern", "zone", "first", "max", "increment", "names", "order", "cache", "new", "after", "may-repeat"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			strange = append(strange, "--"+name)
		}
	}
	switch {
	case len(strange) > 0:
		return ui.Bad("%s is about one series, and NAME is missing", strange[0]).Hint("%s --help", cmd.CommandPath())
	case s.File == nil:
		return ui.Bad("there is no firn.yaml whose series could be created").Hint("to create one series: firn series create NAME --kind sequence")
	}
	var missing []*drawing
	counters := 0
	for i := range s.File.Series {
		one := &s.File.Series[i]
		if one.Kind.Text == config.Flake {
			continue
		}
		counters++
		d, err := s.newCounter(cmd, one.Name.Text)
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
		return ui.Bad("%s lists no series that counts", s.File.Path).Hint("to create one series: firn series create NAME --kind sequence")
	case len(missing) == 0:
		return seriesExists(fmt.Errorf("all %d series of %s that count are there already", counters, s.File.Path), "firn series ls")
	}
	if err := apart(missing); err != nil {
		return err
	}
	for _, d := range missing {
		if err := d.create(cmd); err != nil {
			return err
		}
	}
	return nil
}

// apart returns an error where two of these series, which are all to be created, are documents that could give the
// same text in one store.
func apart(missing []*drawing) error {
	var all []*config.Series
	for _, d := range missing {
		all = append(all, d.Series)
	}
	d, other := countername.EqualTexts(all, whichstore.Texts)
	if d == nil {
		return nil
	}
	create := func(s *config.Series) string { return (&drawing{Series: s}).createCommand() }
	return ui.Bad("the documents %s (%s) and %s (%s) of firn.yaml could give the same texts", other.Name, other.Options.Document.Pattern, d.Name, d.Options.Document.Pattern).
		Hint("give one of them another pattern, such as one with another prefix").
		Hint("only if the texts of both never meet in one table, queue or cache: %s; then: %s --may-repeat %s", create(other), create(d), phrase.ShellWord(other.Name))
}

// isLacking reports whether the stores of a series do not have it. It is an error if a store may
// have lost the series, which would begin again.
func (d *drawing) isLacking(cmd *cobra.Command) (bool, error) {
	stores, closeStores, err := d.openToCreate(cmd.Context(), cmd.ErrOrStderr())
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
		there, err := countername.Counter(ctx, st, d.Name)
		if err != nil || there != nil {
			return false, err // of a sequence that one store of several has: to open it says what is wrong
		}
		lost, err := countername.MayHaveLost(ctx, st)
		if err != nil {
			return false, err
		}
		if lost {
			return false, d.maybeLost(d.URLs[i])
		}
		if err := d.isOther(ctx, st); err != nil {
			return false, d.explain(whichstore.At(d.Series, d.URLs[i], err))
		}
	}
	return true, nil
}

// isOther returns an error if the store probably has a missing series by another name. A command
// without NAME does not claim that the series is new.
func (d *drawing) isOther(ctx context.Context, st store.Store) error {
	if err := countername.CheckNew(ctx, st, d.Series); err != nil || d.Kind != config.Document {
		return err
	}
	return document.CheckNew(ctx, st, d.Name, &d.Options.Document)
}
