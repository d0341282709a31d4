package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// A drawing is a series to draw from, as a command does.
type drawing struct {
	*config.Series
	hints hinter
}

// addKind adds --kind and the flags of series of every kind.
func addKind(cmd *cobra.Command) {
	cmd.Flags().String("kind", "", "the kind of a series that is not in firn.yaml: "+strings.Join(config.Kinds, ", ")+" (flake, or document with --pattern)")
	addSeries(cmd, config.Sequence, config.Document)
	err := cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(config.Kinds, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not there
	}
}

// drawing returns what to draw from for a series; "" is none, so a flake.
func (s *settings) drawing(name string) (*drawing, error) {
	kind, err := s.Kind(name, s.counter)
	if err != nil {
		return nil, err
	}
	if err := s.strangeFlag(name, kind); err != nil {
		return nil, err
	}
	one, err := s.Chosen(name, s.counter)
	if err != nil {
		return nil, err
	}
	return &drawing{one, hinter{cmd: s.cmd}}, nil
}

// warnOn prints warnings.
func warnOn(errs io.Writer) func(string) {
	return func(text string) { ui.PrintWarning(errs, "%s", text) }
}

// strangeFlag refuses a flag that series of this kind do not have. A variable is
// for all commands, and passed over.
func (s *settings) strangeFlag(name, kind string) error {
	var err error
	s.cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || len(f.Annotations[fromVariable]) > 0 {
			return
		}
		_, ofPool := f.Value.(*knobFlag)
		ofSeries, _ := f.Value.(*seriesFlag)
		switch what := seriesText(name, kind); {
		case (ofPool || f.Name == "pool" || f.Name == "shard") && kind != config.Flake:
			err = ui.Bad("--%s is for series of kind %s, and %s", f.Name, config.Flake, what)
		case ofSeries != nil && !ofSeries.Of(kind) && kind == config.Flake && s.noCounter:
			err = s.lacksCounter(f, ofSeries, name)
		case ofSeries != nil && !ofSeries.Of(kind):
			err = ui.Bad("--%s is for series of kind %s, and %s", f.Name, strings.Join(ofSeries.Kinds, ", "), what).
				Hint("--kind %s, if it is one", ofSeries.Kinds[0])
		}
	})
	return err
}

// lacksCounter is the error of a flag of series that count where the store has no counter of the name:
// nobody said that it gives ids, and the store may have lost the counter.
func (s *settings) lacksCounter(f *pflag.Flag, ofSeries *seriesFlag, name string) error {
	lossy := ""
	if s.cmd.Flags().Changed("on-lossy-store") {
		lossy = " --on-lossy-store may-repeat"
	}
	word := phrase.ShellWord(name)
	e := ui.Bad("--%s is for series of kind %s, and the store has no counter %s", f.Name, strings.Join(ofSeries.Kinds, ", "), name)
	if ofSeries.Of(config.Sequence) {
		e.HintOtherKind("if it was a sequence, which the store may have lost: firn series create %s --kind sequence --first N%s, with N above every number in use", word, lossy)
	}
	if ofSeries.Of(config.Document) {
		e.HintOtherKind("if it was a document, which the store may have lost: firn series create %s --pattern PATTERN --after TEXT%s, with TEXT the last one given out", word, lossy)
	}
	return e.Hint("only if it never existed: --kind %s", ofSeries.Kinds[0])
}

func seriesText(name, kind string) string {
	if name == "" {
		return "this is a " + kind
	}
	return name + " is a " + kind
}

// A stream is what a command draws from, with all that is to be closed after.
type stream struct {
	source
	rate  float64 // at most so many a second
	close func() error
}

// open opens the series, to draw about n from it. Warnings go to errs.
func (d *drawing) open(ctx context.Context, errs io.Writer, n int64, asJSON bool) (_ *stream, err error) {
	ids := &idSource{json: asJSON}
	if d.Kind != config.Flake {
		ids.kind = d.Kind
	}
	if d.Form != nil {
		if ids.form, err = ui.Within(ctx, func() (public.Form, error) { return d.Form.Open(warnOn(errs)) }); err != nil {
			return nil, err
		}
		ids.spec = d.Form
	}
	made := sayMade(errs)
	if len(d.URLs) > 1 {
		made = nil // drawing begins no ticket, so a file that is not there was moved or lost
	}
	stores, closeStores, err := d.openStores(ctx, made)
	if err != nil {
		return nil, err
	}
	series, err := open.OpenSeries(ctx, d.Series, stores, &open.Options{Logger: ui.Warnings(errs), Hostname: hostname, About: n})
	if err != nil {
		return nil, errors.Join(d.explain(err), closeStores())
	}
	if series.Began && d.Kind != config.Flake {
		ui.PrintNote(errs, "created the %s %s in %s: a new counter; %s shows those that were there", d.Kind, d.Defined(), fromurl.Redact(whichstore.Text(d.URLs[0])), d.hints.compose("firn series ls"))
	}
	out := &stream{source: ids, rate: plenty, close: func() error { return errors.Join(series.Close(), closeStores()) }}
	switch {
	case series.Lease != nil:
		ids.src, out.rate = series.Lease, series.Lease.State().Layout.Rate()
	case series.Numbers != nil:
		ids.src = series.Numbers
	default:
		out.source = &textSource{src: series.Texts, json: asJSON, form: ids.form, spec: ids.spec}
	}
	return out, nil
}

// hostname is the name of this host. A test replaces it.
var hostname = os.Hostname

// plenty is the rate of what waits for no clock.
const plenty = 1e9

// openStores opens the stores of a series. Made is told of each SQLite file that is made; where it
// is nil, the files have to be there.
func (d *drawing) openStores(ctx context.Context, made open.OnMade) ([]store.Store, func() error, error) {
	var all []store.Store
	var opened []*fromurl.Store
	closeAll := func() error {
		var failed []error
		for _, s := range slices.Backward(opened) {
			failed = append(failed, s.Close())
		}
		return errors.Join(failed...)
	}
	for _, url := range d.URLs {
		s, err := open.Store(ctx, url, made)
		if err != nil {
			return nil, nil, errors.Join(d.explain(whichstore.At(d.Series, url, err)), closeAll())
		}
		all, opened = append(all, s), append(opened, s)
	}
	return all, closeAll, nil
}

// explain adds to an error of a series what can be done about it.
func (d *drawing) explain(err error) error {
	if d.Leasing != nil {
		err = explainLease(d.Leasing, err)
	}
	url, note := d.recoverURL(err)
	var f *ui.Failure
	if !errors.As(err, &f) {
		if f = poolFailure(err, poolPlace{url: url}); f != nil && saysRecover(f) && note != "" {
			f.Hint("%s", note)
		}
	}
	if f == nil {
		f = classify(err)
	}
	if d.hintTemplate(f, err) {
		return f
	}
	if m := d.missingOf(err); m != nil && d.Leasing == nil {
		return elsewhereFirst(err, addHints(f, missingHints([]*missing{m})))
	}
	var copied *sqlite.CopyError
	var file *lease.GrantFileError
	var forgot *store.ForgotError
	var ended *sequence.EndError
	var mismatch *sequence.MismatchError
	var lossySequence *sequence.LossyError
	var lossyDocument *document.LossyError
	var other *document.DefinitionError
	var used *document.EndError
	var instance *document.InstanceError
	var near *countername.NearNameError
	var overlap *document.OverlapError
	var after *document.AfterError
	var gone *open.NoStoreError
	switch {
	case errors.As(err, &gone):
		return d.hintGone(f, gone)
	case errors.As(err, &near):
		return d.hintNear(f, near)
	case errors.As(err, &overlap):
		return d.hintOverlap(f, overlap)
	case errors.As(err, &after):
		return d.hintAfter(f, after)
	case errors.As(err, &copied), errors.As(err, &file):
		return f // what to do is said elsewhere
	case errors.As(err, &forgot) && d.Across() && strings.HasSuffix(forgot.What, " stores have no record of it"):
		return f.Hint("%s", d.partly()).Hint("to see which store that is: firn doctor")
	case errors.As(err, &forgot), errors.As(err, &instance):
		if forgot != nil {
			addHints(f, remedy.Counter(err, url))
		} else {
			addHints(f, remedy.MayHaveLost(err, url))
		}
		if note != "" {
			f.Hint("%s", note)
		}
		return f
	case errors.As(err, &lossySequence), errors.As(err, &lossyDocument):
		return d.hintLossy(f, err, url)
	case errors.As(err, &other):
		return d.hintDefinition(f, other)
	case errors.As(err, &mismatch):
		return hintMismatch(f, mismatch)
	case errors.As(err, &ended):
		return d.hintEnd(f, ended)
	case errors.As(err, &used):
		return d.hintUsed(f, used)
	}
	return f
}

// hintLossy says what to do where a store may lose writes, and nobody has accepted that numbers repeat.
func (d *drawing) hintLossy(f *ui.Failure, err error, url string) *ui.Failure {
	var sequences *sequence.LossyError
	if errors.As(err, &sequences) && sequences.Since {
		return addHints(f.Hint("to see why the store may lose writes: firn doctor"), remedy.BecameLossy(err, url))
	}
	return addHints(f, remedy.Durable(url)).
		Hint("only if repeated numbers do no harm, because numbers repeat when this store forgets: in firn.yaml: series: { %s: { kind: %s, on-lossy-store: may-repeat } }", d.Name, d.Kind).
		HintFlag("on-lossy-store", "the same for a series that firn.yaml does not list: --on-lossy-store may-repeat")
}

// hintGone says what to do where the file of a store is not there.
func (d *drawing) hintGone(f *ui.Failure, e *open.NoStoreError) *ui.Failure {
	f.Code, f.Hints = ui.ExitFailed, nil
	for _, text := range remedy.NoFile(e.URL, remedy.Backup(e.URL)) {
		f.Hint("%s", text)
	}
	if len(d.URLs) > 1 {
		f.Hint("only if %s never existed: firn series create %s, which creates the file", d.Name, phrase.ShellWord(d.Name))
	}
	return f
}

// hintMismatch says what to do where a counter was created with another option.
func hintMismatch(f *ui.Failure, e *sequence.MismatchError) *ui.Failure {
	f.Hint("a counter keeps the %s that it was created with: leave out %s, or write %s", e.Option, e.Option, e.Have)
	first, err := strconv.ParseInt(e.Want, 10, 64)
	if e.Option == "first" && err == nil && first > 1 {
		f.Hint("to have the next numbers from %d on, where the counter is below: firn series raise %s %d", first, phrase.ShellWord(e.Name), first-1)
	}
	return f.Hint("for numbers of their own, give the series another name")
}

// recoverURL is the store that a hint about an error names, and a note that says what the
// placeholder URL stands for, where the hint has it. A ticket's stores are not the store that a
// command without --store means: that one may be healthy, and to recover it stops its programs.
func (d *drawing) recoverURL(err error) (url, note string) {
	if len(d.URLs) == 1 {
		return whichstore.Text(d.URLs[0]), ""
	}
	var placed *whichstore.PlacedError
	var forgot *store.ForgotError
	if errors.As(err, &placed) {
		url = whichstore.Text(placed.URL)
	} else if errors.As(err, &forgot) && slices.ContainsFunc(d.URLs, func(u string) bool { return whichstore.Text(u) == forgot.Store }) {
		url = forgot.Store
	}
	switch {
	case url == "":
		return "URL", fmt.Sprintf("URL is the one of the stores of %s that has the problem: %s. To see which one: firn doctor", d.Name, whichstore.Texts(d.Series))
	case remedy.WithoutPassword(url) != url:
		return "URL", fmt.Sprintf("URL is the store %s of %s, with its password, which is not shown", fromurl.Redact(url), d.Name)
	}
	return url, ""
}

func zoneFlag(zone string) string {
	if zone == "" {
		return ""
	}
	return " --zone " + zone
}

// documentSyntax shows where a pattern or a text is wrong.
func documentSyntax(from string, e *firn.SyntaxError) *ui.Failure {
	if from == "" || from == config.Default {
		from = e.Kind
	}
	f := ui.Bad("%s: %s", from, e.Reason)
	f.Place = []string{fmt.Sprintf("%q", e.Text), strings.Repeat(" ", 1+quotedWidth(e.Text[:e.Offset])) + "^"}
	return f
}

// quotedWidth is how many columns a text takes between quotes.
func quotedWidth(s string) int { return len([]rune(fmt.Sprintf("%q", s))) - 2 }
