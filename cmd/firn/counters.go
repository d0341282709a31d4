package main

import (
	"context"
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
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
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
	cmd.Flags().Var(&numbersFlag{}, "numbers", "by how much to raise the counters of sequences, tickets and documents: more than any of them can have lost; SERIES=N, once for each: of this one")
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
		case one >= dated.MaxRaise:
			return n, ui.Bad("--numbers %s: it is below %d, which no counter could hold", said, int64(dated.MaxRaise))
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
		return phrase.Count(n.all) + " numbers"
	case n.all == 0:
		return "numbers: " + strings.Join(own, ", ")
	}
	return fmt.Sprintf("%s numbers (%s)", phrase.Count(n.all), strings.Join(own, ", "))
}

// check returns an error where nobody has said how far one of these series had come, or
// somebody has said it of another one. Since is what is known of that.
func (n skipped) check(series, since []string) error {
	for name := range n.each {
		if !slices.Contains(series, name) {
			return ui.Bad("--numbers %s=%d: the store has no series %q that counts; it has %s", name, n.each[name], name, phrase.List(series))
		}
	}
	left := slices.DeleteFunc(slices.Clone(series), func(name string) bool { return n.each[name] > 0 })
	if len(left) == 0 || n.all > 0 {
		return nil
	}
	which := fmt.Sprintf("%d series that count", len(series))
	if len(n.each) > 0 {
		which = "series that count, " + phrase.And(left)
	}
	f := ui.Bad("the store has %s, and nobody but you can know how far: --numbers is missing", which).Hint("%s", numbersHint)
	for _, text := range since {
		f.Hint("%s", text)
	}
	return f
}

const (
	numbersHint = "--numbers N, more than any of them can have given out since what is in the store now. " + howFar
	howFar      = "To find N, take the highest number of each in your rows, add what was given and not stored, and subtract what the store says was granted"
)

// givenSince says up to where, and when, a sequence was last granted numbers as far as the store
// knows; "" where it never was. How many were given since nobody can estimate: what is lost is
// often the hour in which most was drawn.
func givenSince(i sequence.Info) string {
	if i.Err != nil || i.At.IsZero() {
		return ""
	}
	return fmt.Sprintf("sequence %s was last granted numbers, up to %d, at %s", i.Name, int64(i.Granted), i.At.UTC().Format(time.RFC3339))
}

// A usedUp is a series that a recovery leaves no number.
type usedUp struct {
	series string
	until  string // when there are some again
	room   string // for how many there is room
}

// usedUp returns the series that these numbers leave none.
func (n skipped) usedUp(ctx context.Context, s store.Store) (all []usedUp, err error) {
	sequences, err := sequence.PlanRecovery(ctx, s, max(n.all, 1), n.each)
	if err != nil {
		return nil, err
	}
	for _, r := range sequences {
		if r.Info.Left == 0 {
			all = append(all, usedUp{r.Series, "for ever", fmt.Sprintf("its last number is %d", r.Info.Max)})
		}
	}
	documents, err := document.PlanRecovery(ctx, s, max(n.all, 1), n.each)
	if err != nil {
		return nil, err
	}
	patterns, err := document.List(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, r := range documents {
		if !r.IsFull {
			continue
		}
		until := "for ever"
		if r.Full != "" {
			until = "until " + r.Full + " is over"
		}
		pattern := ""
		for _, one := range patterns {
			if one.Name == r.Series {
				pattern = one.Pattern
			}
		}
		all = append(all, usedUp{r.Series, until, fmt.Sprintf("%s has room for %s", pattern, phrase.Count(r.Max))})
	}
	return all, nil
}

// refuse returns an error where a number that was meant for all series uses one up. Who
// names the series means that one.
func (n skipped) refuse(all []usedUp, url, flags string) error {
	unnamed := slices.DeleteFunc(slices.Clone(all), func(u usedUp) bool { return n.each[u.series] > 0 })
	if len(unnamed) == 0 {
		return nil
	}
	var whom []string
	fewer, same := n.flags(), n.flags()
	for _, u := range unnamed {
		whom = append(whom, u.series+", "+u.until)
		fewer += " --numbers " + phrase.ShellWord(u.series+"=N")
		same += " --numbers " + phrase.ShellWord(fmt.Sprintf("%s=%d", u.series, n.all))
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
	Granted int64  `json:"granted,string,omitempty"`
}

// raiseCounters raises every counter of a store by so many numbers.
func raiseCounters(ctx context.Context, s store.Store, n skipped) ([]restoredCounter, error) {
	var all []restoredCounter
	// Where there is nothing to raise, too: what is not there may be forgotten, and
	// does not begin again by itself.
	dense, err := sequence.Recover(ctx, s, max(n.all, 1), n.each)
	if err != nil {
		return nil, again(err)
	}
	for _, r := range dense {
		all = append(all, restoredCounter{Series: r.Series, Kind: config.Sequence, By: r.By, Granted: int64(r.Info.Granted)})
	}
	raised, err := document.Recover(ctx, s, max(n.all, 1), n.each)
	if err != nil {
		return nil, again(err)
	}
	for _, r := range raised {
		all = append(all, restoredCounter{Series: r.Series, Kind: config.Document, By: r.By, Through: r.Through})
	}
	return all, nil
}

func again(err error) error {
	return classify(err).Hint("the same again, before anything is started")
}

func printCounters(out io.Writer, all []restoredCounter, asJSON bool) error {
	enc := json.NewEncoder(out)
	var errs []error
	for _, c := range all {
		switch {
		case asJSON:
			errs = append(errs, enc.Encode(c))
		case c.Kind == config.Sequence:
			_, err := fmt.Fprintf(out, "series %s: %d numbers are left out; it goes on above %d\n", c.Series, c.By, c.Granted)
			errs = append(errs, err)
		case c.Through != "":
			_, err := fmt.Fprintf(out, "document %s: %d numbers are left out in each period up to %s\n", c.Series, c.By, c.Through)
			errs = append(errs, err)
		default:
			_, err := fmt.Fprintf(out, "document %s: %d numbers are left out\n", c.Series, c.By)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
