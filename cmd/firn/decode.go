package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/inspect"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
)

func newDecode() *cobra.Command {
	var layout layoutFlag
	var series, pattern string
	cmd := &cobra.Command{
		Use:   "decode [--layout LAYOUT] [--as FORM] [--pattern PATTERN] [ID...]",
		Short: "Show what an id contains: time, worker, counter",
		Long: `Say what is in ids: when each was made, by which worker, and which of its ids of
that tick it is.

Ids are arguments, or lines of standard input where there are none or "-". With
--layout they are read in that layout, and without in that of the pool if firn.yaml
has one pool. Else there is a line for every known layout in which the id makes
sense, those of the pools first and then the most plausible: an id does not say
which layout it is of, so take the first line as a guess. Where two layouts divide the
same bits differently, the line of each says what the other reads: bwmarrin/snowflake
has Twitter's bits and epoch with a node in place of datacenter and worker, as leaf
has. UUIDs, ULIDs, ObjectIds and TIDs of the AT Protocol are known by their shape.

Ids in a public form are read in that of --as; or, where it is not given, in those
of the series in firn.yaml, and else as base62, base64url and the like, as far as that
makes sense. A number may be the cipher of another: there is a line for both.

A document, such as INV-20261120-000042, is read by the patterns of the series in firn.yaml,
or by --pattern: the date, the count, and whether the check digits are right. That comes
before any guess.

A line that is no id is reported on standard error, with its number. The others are
decoded all the same, and the exit code is 2.`,
		Example: `  firn decode 175928847299117063
  firn decode --layout discord --json 175928847299117063
  firn decode --layout 'time:41@1ms,shard:13,seq:10;epoch=2011-01-01T00:00:00Z' 2217813737473025833
  firn decode --layout twitter --json < ids.txt | jq -r .time
  firn decode --layout instagram --as base64url ybyPRoQWzX
  firn decode --pattern 'INV-{yyyyMMdd}-{6}' INV-20261120-000042
  firn decode --as opaque:photo --series photo --keys firn.keys < ids.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := newDecoder(cmd.OutOrStdout(), cmd.ErrOrStderr(), time.Now())
			d.tell(cmd.Context())
			d.json = wantsJSON(cmd)
			if err := d.withPattern(pattern, layout.Layout); err != nil {
				return err
			}
			if err := d.configure(cmd, layout.Layout, series); err != nil {
				return err
			}
			if len(args) == 0 || len(args) == 1 && args[0] == "-" {
				return d.stream(cmd.InOrStdin())
			}
			return d.arguments(args)
		},
	}
	addLayout(cmd, &layout, "the layout the ids are of: a preset or a spec; firn layout ls")
	addForm(cmd, "the public form they are in; firn public encode --help lists them")
	cmd.Flags().StringVar(&series, "series", "", "the series that a cipher or an opaque id is of")
	cmd.Flags().StringVar(&pattern, "pattern", "", "the pattern of the documents that they are; docs/guides/documents.md")
	return cmd
}

// A decoder decodes any number of ids in the memory of a few.
type decoder struct {
	answers
	json bool
	now  time.Time

	asked   *formReader   // of --as, which all texts are in; nil: find out
	forms   []*formReader // of the series in the config
	numbers []*formReader // those of them whose texts are numbers
	unread  []unreadForm  // of series whose keys are missing

	documents []*documentReader // of the series in the config, or of --pattern

	known   *inspect.Decoder   // of --layout, or of the only pool; nil: find out
	insist  bool               // there is --layout or --pattern: what cannot be read in it is an error
	pools   []*inspect.Decoder // then these
	presets *inspect.Guesser   // and these

	alone   bool        // there is one id only, which need not be repeated on its lines
	id      firn.ID     // the current one
	form    *formReader // in which it was read; nil: it was plain
	certain bool        // and read in the one layout it can be of
	reading inspect.Reading
	guesses []inspect.Guess

	document *documentRead // that was read last; nil: none
}

func newDecoder(out, errs io.Writer, now time.Time) *decoder {
	d := &decoder{now: now, presets: inspect.NewGuesser(now)}
	d.answers = newAnswers(out, errs, "decoded", d.decode)
	return d
}

// configure takes the layout and the form of the flags, and what they do not say
// from firn.yaml.
func (d *decoder) configure(cmd *cobra.Command, layout firn.Layout, series string) error {
	as := cmd.Flags().Changed("as") || series != ""
	if layout.IsValid() {
		d.known, d.insist = inspect.NewDecoder(layout), true
	}
	set, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	if set.File != nil && !d.insist {
		d.withLayouts(set.File)
		d.withDocuments(set.File)
	}
	if !as {
		if set.File != nil {
			d.withForms(set)
		}
		if d.insist {
			d.numbers = nil // a number is one of that layout
		}
		return nil
	}
	spec, err := set.formWanted(series)
	var f *ui.Failure
	if errors.Is(err, errFormless) && errors.As(err, &f) {
		f.Hints = append([]ui.Hint{{Text: "a plain id or number is read without --series"}}, f.Hints...)
	}
	if err != nil {
		return err
	}
	return d.withForm(spec, set.File)
}

// withLayouts takes the layouts of the pools of a config.
func (d *decoder) withLayouts(file *config.File) {
	var seen []firn.Layout
	for i := range file.Pools {
		l := file.Pools[i].Layout()
		if !slices.Contains(seen, l) {
			seen = append(seen, l)
			d.pools = append(d.pools, inspect.NewDecoder(l))
		}
	}
	if len(file.Pools) == 1 {
		d.known, d.pools = d.pools[0], nil
	}
	d.presets = inspect.NewGuesser(d.now, seen...)
}

// arguments decodes the arguments of the command. One id alone has room for a
// field a line.
func (d *decoder) arguments(args []string) error {
	if len(args) == 1 && !d.json {
		d.alone = true
		if err := d.single(args[0]); err != nil {
			return err
		}
		return d.out.Flush()
	}
	return d.all(args)
}

// farCount is more than a document counts to that has no date: a number above it is rather an id, which
// comes first.
const farCount = 1_000_000_000_000

// decode writes to d.line what an id says, one line for each reading.
func (d *decoder) decode(text []byte) error {
	d.line, d.certain, d.form, d.document = d.line[:0], false, nil, nil
	if d.asked != nil {
		id, err := d.asked.Parse(string(text))
		if err != nil {
			return err
		}
		return d.inForm(d.asked, id, text)
	}
	documents, mistyped := d.inDocuments(text)
	if d.patterned() {
		d.certain = documents == 1
		return mistyped
	}
	if err := readID(&d.id, text); err != nil {
		if documents > 0 {
			d.certain = documents == 1
			return nil
		}
		return d.inForms(text, err, mistyped)
	}
	before, far := len(d.line), documents > 0 && d.document.Period == "" && d.document.Count > farCount
	err := mistyped
	if documents > 0 || mistyped != nil {
		d.inPools(text)
	} else {
		err = d.inLayouts(text)
	}
	if len(d.numbers) > 0 {
		d.asNumbers(text)
	}
	if documents > 0 {
		d.certain = documents == 1 && len(d.line) == before
	}
	if far {
		d.line = slices.Concat(d.line[before:], d.line[:before])
	}
	if len(d.line) > 0 {
		return nil
	}
	return err
}

// readID is [firn.ParseID] without a copy of what it reads.
func readID(id *firn.ID, text []byte) error {
	err := id.UnmarshalText(text)
	if err == nil && *id == 0 {
		_, err = firn.ParseID(string(text))
	}
	return err
}

// inLayouts writes to d.line what the id says in each layout that it can be of.
func (d *decoder) inLayouts(text []byte) error {
	before := len(d.line)
	if d.known != nil {
		err := d.known.Decode(d.id, &d.reading)
		if err == nil {
			d.certain = len(d.numbers) == 0
			d.append(text, !d.certain)
		}
		if err == nil || d.insist {
			return err
		}
	}
	for _, r := range d.pools {
		if err := r.Decode(d.id, &d.reading); err == nil {
			d.append(text, true)
		}
	}
	d.guesses = d.presets.Append(d.guesses[:0], d.id)
	if len(d.guesses) == 0 && len(d.line) == before {
		return ui.Bad("%s makes sense in no known layout", text).Hint("to read it in any layout: firn decode --layout LAYOUT %s", text)
	}
	for _, g := range d.guesses {
		if err := g.Decode(d.id, &d.reading); err != nil {
			return err
		}
		d.append(text, true)
	}
	return nil
}

// foreign writes to d.line what an id of other people's says, and reports whether
// it is one.
func (d *decoder) foreign(text []byte) (bool, error) {
	ok, err := inspect.Foreign(string(text), &d.reading)
	switch {
	case !ok || err != nil:
		return ok, err
	case d.insist:
		return true, ui.Bad("%s is of the form %s, not of layout %s", text, d.reading.Name, d.known.Name())
	}
	d.append(text, true)
	return true, nil
}

// layoutColumn is the width of the longest preset's name, and a gap.
const layoutColumn = 16

// append appends the reading to d.line as the flags ask for it. The text is that of
// the id, or the one from which it was read.
func (d *decoder) append(text []byte, withLayout bool) {
	if d.json {
		id := text
		if d.form != nil {
			var b [20]byte
			id = strconv.AppendInt(b[:0], int64(d.id), 10)
		}
		d.line = append(d.reading.AppendJSON(d.line, id), '\n')
	} else {
		d.appendFields(text, withLayout)
	}
	if d.form != nil {
		d.appendForm(text)
	}
}

// appendFields appends the reading for a person, on one line.
func (d *decoder) appendFields(text []byte, withLayout bool) {
	if !d.alone {
		d.line = append(append(d.line, text...), "  "...)
	}
	if withLayout {
		d.line = append(d.line, d.reading.Name...)
		for n := len(d.reading.Name); n < max(layoutColumn, len(d.reading.Name)+2); n++ { // a spec is longer
			d.line = append(d.line, ' ')
		}
	}
	d.line = append(d.reading.AppendText(d.line), '\n')
}

// single decodes one id for a person.
func (d *decoder) single(text string) error {
	if err := d.decode([]byte(text)); err != nil {
		return d.advise(text, err)
	}
	if d.certain {
		if d.document != nil {
			if err := d.document.print(d.out, text, d.form); err != nil || d.form == nil {
				return err
			}
			return d.form.print(d.out, d.id)
		}
		if err := printReading(d.out, &d.reading, text); err != nil || d.form == nil {
			return err
		}
		return d.form.print(d.out, d.id)
	}
	_, err := d.out.Write(d.line)
	return err
}

// printReading writes what one id says for a person, a field a line.
func printReading(w io.Writer, r *inspect.Reading, id string) error {
	b := fmt.Appendf(nil, "%s in layout %s\n\n", id, r.Name)
	b = fmt.Appendf(b, "    %-12s%s   (tick %d)\n", "time", r.TimeText(), r.Tick)
	for _, f := range r.Fields {
		b = fmt.Appendf(b, "    %-12s%s\n", f.Name, f.Value())
	}
	_, err := w.Write(b)
	return err
}

// likeOpaque is how an opaque id looks, with its prefix.
var likeOpaque = regexp.MustCompile(`^(?:([a-z][a-z0-9_]*)_)?[1-9A-HJ-NP-Za-km-z]{23}$`)

// missingKeys adds to an error what is missing to read a text that may be an opaque id of a series in firn.yaml,
// and reports whether anything is.
func (d *decoder) missingKeys(f *ui.Failure, text string) (missing bool) {
	m := likeOpaque.FindStringSubmatch(text)
	for _, u := range d.unread {
		if m != nil && u.prefix == m[1] {
			f.Hint("%s", u.hint(text))
			missing = true
		}
	}
	return missing
}

// advise adds what to do about an id that could not be read.
func (d *decoder) advise(text string, err error) error {
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		f := syntaxFailure(syntax.Kind, syntax)
		if m := likeOpaque.FindStringSubmatch(text); m != nil && syntax.Kind == "id" {
			as := "opaque"
			if m[1] != "" {
				as += ":" + m[1]
			}
			if !d.missingKeys(f, text) {
				f.Hint("an opaque id? --as %s --series SERIES --keys FILE", as)
			}
		}
		return f
	}
	var f *ui.Failure
	if errors.As(err, &f) && len(f.Hints) > 0 {
		d.missingKeys(f, text)
		return f
	}
	f = ui.Bad("%w", err)
	var other *public.KeyError
	switch {
	case errors.As(err, &other):
		return f.Hint("--keys FILE, with key %d in it", other.Number)
	case errors.Is(err, public.ErrForged):
		return f.Hint("is it the right --series, and are these its --keys?")
	case d.insist:
		return f.Hint("to see which layouts it can be of: firn decode %s", text)
	}
	return f
}
