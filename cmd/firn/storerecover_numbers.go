package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/sequence"
)

// This file is what "store recover" does about series that count. How far a
// counter had gone that a store has forgotten no clock can tell, only a person.

// A numbersFlag is the values of --numbers as they were given.
type numbersFlag []string

func (f *numbersFlag) String() string     { return strings.Join(*f, ",") }
func (f *numbersFlag) Type() string       { return "N or SERIES=N" }
func (f *numbersFlag) Set(s string) error { *f = append(*f, s); return nil }

// addNumbers adds --numbers.
func addNumbers(cmd *cobra.Command) {
	cmd.Flags().Var(&numbersFlag{}, "numbers", "by how much to raise the counters of sequences and documents: more than any of them can have lost; SERIES=N, once for each: of this one")
}

// A skipped is how many numbers counters leave out.
type skipped struct {
	all  int64            // 0: nobody said
	each map[string]int64 // of the series that were named
	said []string         // the values of --numbers
}

// numbersOf is the --numbers of a command.
func numbersOf(cmd *cobra.Command) (skipped, error) {
	n := skipped{each: map[string]int64{}}
	before := map[string]string{}
	for _, said := range *cmd.Flags().Lookup("numbers").Value.(*numbersFlag) {
		name, text := "", said
		if i := strings.LastIndexByte(said, '='); i >= 0 {
			name, text = said[:i], said[i+1:]
		}
		one, err := strconv.ParseInt(text, 10, 64)
		switch earlier, twice := before[name]; {
		case err != nil:
			return n, ui.Bad("--numbers %s: %q is no number", said, text)
		case one < 1:
			return n, ui.Bad("--numbers %s: it is at least 1", said)
		case one > recovery.MaxNumbers:
			return n, ui.Bad("--numbers %s: it is below %d, which no counter could hold", said, int64(recovery.MaxNumbers)+1)
		case twice:
			return n, ui.Bad("--numbers %s: --numbers %s says already how many", said, earlier)
		case name == "":
			n.all = one
		default:
			n.each[name] = one
		}
		before[name], n.said = said, append(n.said, said)
	}
	return n, nil
}

// flags are the flags that say so again.
func (n skipped) flags() string {
	var b strings.Builder
	for _, said := range n.said {
		b.WriteString(" --numbers " + phrase.ShellWord(said))
	}
	return b.String()
}

// text is how many numbers each of these series leaves out.
func (n skipped) text(series []string) string {
	var own []string
	for _, name := range series {
		if by, ok := n.each[name]; ok && by != n.all {
			own = append(own, name+" "+phrase.Count(by))
		}
	}
	switch {
	case len(own) == 0:
		return phrase.Counted(n.all, "number", "numbers")
	case n.all == 0:
		return "numbers: " + strings.Join(own, ", ")
	}
	return fmt.Sprintf("%s (%s)", phrase.Counted(n.all, "number", "numbers"), strings.Join(own, ", "))
}

// checkUse refuses numbers that nothing would leave out.
func (n skipped) checkUse(c *recovery.Contents, url string) error {
	if n.all == 0 || len(c.Series()) > 0 {
		return nil
	}
	return ui.Bad("--numbers: the store has no sequence and no document, so no number would be left out; nothing was done").
		Hint("leave out --numbers: firn store recover%s. A counter that the store has lost is created again above its last number: firn series create --help", remedy.StoreFlag(url))
}

// explain says what to type where the numbers to leave out cannot be meant.
func (n skipped) explain(err error, c *recovery.Contents, url, flags string) error {
	var none *recovery.NumbersError
	var unknown *recovery.UnknownSeriesError
	var full *recovery.UsedUpError
	switch {
	case errors.As(err, &none):
		return n.missing(none, c)
	case errors.As(err, &unknown):
		return ui.Bad("--numbers %s=%d: the store has no series %q that counts; it has %s", unknown.Series, n.each[unknown.Series], unknown.Series, phrase.List(unknown.Have))
	case errors.As(err, &full):
		return n.refused(full.UsedUp, url, flags)
	}
	return err
}

// missing is the error where nobody has said how far some series had come.
func (n skipped) missing(e *recovery.NumbersError, c *recovery.Contents) error {
	which := phrase.Counted(int64(len(e.Series)), "series that counts", "series that count")
	if len(n.each) > 0 {
		which = "series that count, " + phrase.And(e.Series)
	}
	f := ui.Bad("the store has %s, and nobody but you can know how far: --numbers is missing", which).Hint("%s", numbersHint).Hint("%s", remedy.NothingLost)
	return addHints(f, givenSince(c))
}

const (
	numbersHint = "--numbers N, more than any of them can have given out since what is in the store now. " + howFar
	howFar      = "To find N, take the highest number of each in your rows, add what was given and not stored, and subtract what the store says was granted. Each date of a document counts separately: do so for today and each later date, and take the largest"
)

// givenSince says up to where, and of a sequence when, each series was last granted numbers as far
// as the store knows. How many were given since nobody can estimate: what is lost is often the hour in
// which most was drawn.
func givenSince(c *recovery.Contents) (texts []string) {
	for _, i := range c.Sequences {
		if i.Err == nil && !i.At.IsZero() {
			texts = append(texts, fmt.Sprintf("sequence %s was last granted numbers, up to %d, at %s", i.Name, int64(i.Granted), i.At.UTC().Format(time.RFC3339)))
		}
	}
	for _, i := range c.Documents {
		if i.Text != "" {
			texts = append(texts, fmt.Sprintf("document %s was last granted numbers, %s", i.Name, grantedOf(i)))
		}
	}
	return texts
}

// grantedOf says up to where a document was granted numbers of today and of each later date.
func grantedOf(i document.Info) string {
	var all []string
	for _, n := range i.Texts {
		all = append(all, fmt.Sprintf("up to %d (%s)", n.Count, n.Text))
	}
	if i.Texts[0].Period < i.Today {
		all = slices.Insert(all, 1, "none of "+i.Today)
	}
	if i.Texts[0].Period > i.Today {
		all = append(all, "none of "+i.Today)
	}
	return strings.Join(all, ", and ")
}

// untilText says when a series that is used up has numbers again.
func untilText(u recovery.UsedUp) string {
	if u.Period == "" {
		return "for ever"
	}
	return "until " + u.Period + " is over"
}

// lastText says for how many numbers a series has room.
func lastText(u recovery.UsedUp) string {
	if u.Pattern == "" {
		return fmt.Sprintf("its last number is %d", u.Max)
	}
	return fmt.Sprintf("%s has room for %s", u.Pattern, phrase.Count(u.Max))
}

// refused is the error where a number that was meant for all series uses some up. Whoever
// names a series means that one.
func (n skipped) refused(unnamed []recovery.UsedUp, url, flags string) error {
	var whom []string
	fewer, same := n.flags(), n.flags()
	for _, u := range unnamed {
		whom = append(whom, u.Series+", "+untilText(u))
		fewer += " --numbers " + phrase.ShellWord(u.Series+"=N")
		same += " --numbers " + phrase.ShellWord(fmt.Sprintf("%s=%d", u.Series, n.all))
	}
	they, each := "it", "it"
	if len(unnamed) > 1 {
		they, each = "they", "each"
	}
	command := "firn store recover" + remedy.StoreFlag(url) + flags
	return ui.Failed("--numbers %d would leave no number to series %s; nothing was done", n.all, strings.Join(whom, ", and ")).
		Hint("to leave out fewer numbers of %s: %s%s, with N more than the series can have given out since the state that is in the store now", each, command, fewer).
		Hint("only if %s may give no number until then: %s%s", they, command, same)
}

// A restoredCounter is a series that counts, as --json prints it.
type restoredCounter struct {
	Series  string `json:"series"`
	Kind    string `json:"kind"`
	By      int64  `json:"raised_by,string"`
	Through string `json:"through,omitempty"` // of a document: the last period that was raised
	Text    string `json:"text,omitempty"`    // of a document: the last text that may have been given out, of the last date
	Granted int64  `json:"granted,string,omitempty"`

	Texts []string `json:"texts,omitempty"` // of a document with later dates than today's: the same of today and of each later date

	from int64             // of a sequence: the number from which they are counted; 0: not said
	last []document.Number // the texts, one where no later date is in use
}

// countersOf are the series that a recovery has raised.
func countersOf(r recovery.Result) (all []restoredCounter) {
	for _, one := range r.Sequences {
		all = append(all, restoredCounter{Series: one.Series, Kind: config.Sequence, By: one.By, Granted: int64(one.Info.Granted), from: raisedFrom(one)})
	}
	for _, one := range r.Documents {
		all = append(all, restoredCounter{Series: one.Series, Kind: config.Document, By: one.By, Through: one.Through, Text: one.Text, Texts: severalTexts(one.Texts), last: one.Texts})
	}
	return all
}

// raisedFrom is the number above which a recovery leaves out numbers of a sequence; 0 where the sequence is used
// up, so that it may have left out fewer, and where nothing was granted.
func raisedFrom(r sequence.Recovery) int64 {
	if r.Info.Left == 0 || r.Info.At.IsZero() {
		return 0
	}
	return int64(r.Info.Granted) - r.By*max(r.Info.Increment, 1)*max(int64(r.Info.Stores), 1)
}

// counted says from which number the numbers of a sequence are counted. That number can be above the one that the
// command printed before: a process reserves more than it uses, and hands the rest back.
func (c restoredCounter) counted() string {
	if c.from <= 0 {
		return ""
	}
	return fmt.Sprintf(", counted from %d, the highest number that a process ever reserved (what it did not use was handed back)", c.from)
}

// leftOut counts the numbers that are left out.
func (c restoredCounter) leftOut() string {
	return phrase.Counted(c.By, "number is", "numbers are")
}

// above says above which text of each date a document continues; "" if it has given out none.
func (c restoredCounter) above() string {
	if len(c.last) == 0 {
		return ""
	}
	return "; it continues above " + phrase.And(textsOf(c.last))
}

// raised are the periods in which a document leaves out numbers.
func (c restoredCounter) raised() string {
	text := "each period up to " + c.Through
	var later []string
	for _, n := range c.last {
		if n.Period > c.Through {
			later = append(later, n.Period)
		}
	}
	if len(later) > 0 {
		text += ", and in " + phrase.And(later)
	}
	return text
}

func printCounters(out io.Writer, all []restoredCounter, asJSON bool) error {
	enc := json.NewEncoder(out)
	var errs []error
	for _, c := range all {
		switch {
		case asJSON:
			errs = append(errs, enc.Encode(c))
		case c.Kind == config.Sequence:
			_, err := fmt.Fprintf(out, "series %s: %s left out%s; it continues above %d\n", c.Series, c.leftOut(), c.counted(), c.Granted)
			errs = append(errs, err)
		case c.Through != "":
			_, err := fmt.Fprintf(out, "document %s: %s left out in %s%s\n", c.Series, c.leftOut(), c.raised(), c.above())
			errs = append(errs, err)
		default:
			_, err := fmt.Fprintf(out, "document %s: %s left out%s\n", c.Series, c.leftOut(), c.above())
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
