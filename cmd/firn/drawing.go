package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// A drawing is what it takes to draw from a series.
type drawing struct {
	name, kind string
	urls       []string // of its stores, one but for a ticket; "" is the implicit one
	leasing    *leasing // of a flake
	options    seriesOptions
	hints      hinter            // of the command that draws
	listed     bool              // it is in firn.yaml
	form       *formSpec         // in which ids are printed; nil: as they are
	from       map[string]string // where each setting of a counter is from
}

// addKind adds --kind and the flags of series of every kind.
func addKind(cmd *cobra.Command) {
	cmd.Flags().String("kind", "", "the kind of a series that is not in firn.yaml: "+strings.Join(kinds, ", ")+" (flake, or serial with --pattern)")
	addSeries(cmd, kindSegment, kindSerial)
	err := cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not there
	}
}

// drawing returns what to draw from for a series; "" is none, so a flake.
func (s *settings) drawing(name string) (*drawing, error) {
	d := &drawing{name: name, urls: []string{s.storeURL().text}, hints: hinter{s.cmd}}
	var one *seriesConfig
	var err error
	if name != "" {
		if one, err = s.seriesNamed(name); err != nil {
			return nil, err
		}
		d.listed = one != nil
	}
	if d.kind, err = s.kind(name, one); err != nil {
		return nil, err
	}
	if err := s.strangeFlag(name, d.kind); err != nil {
		return nil, err
	}
	if d.kind == kindFlake {
		if d.leasing, err = s.leasing(name); err != nil {
			return nil, err
		}
	} else if err := s.countedDrawing(d, one); err != nil {
		return nil, err
	}
	if s.flags.Lookup("as") != nil {
		if d.form, err = s.form(name); err != nil {
			return nil, err
		}
	}
	if d.form != nil && d.kind == kindSerial {
		return nil, ui.Bad("a public form is of an id, and the series %s gives texts: it is a serial", name)
	}
	return d, nil
}

// kind is the kind of a series, nil being one that is not in the file. It is that of
// the counter of that name in the store, if there is one; else what is said; else a
// flake.
func (s *settings) kind(name string, one *seriesConfig) (string, error) {
	said := s.value("kind", entry{}, "")
	switch {
	case said.text != "":
		if err := checkKind(said.text); err != nil {
			return "", valueError(said.from, err)
		}
		if one != nil && one.kind.text != said.text {
			return "", ui.Bad("%s %s: series %s is of kind %s, says %s:%d", said.from, said.text, one.name.text, one.kind.text, s.file.path, one.kind.at.line)
		}
		return said.text, s.counter.agrees(name, said.text, said.from)
	case one != nil:
		return one.kind.text, s.counter.agrees(name, one.kind.text, fmt.Sprintf("%s:%d", s.file.path, one.kind.at.line))
	}
	if f := s.flags.Lookup("pattern"); f != nil && f.Changed {
		return kindSerial, s.counter.agrees(name, kindSerial, origin(f))
	}
	if s.counter != nil {
		return s.counter.kind, nil
	}
	return kindFlake, nil
}

// strangeFlag refuses a flag that series of this kind do not have. A variable is
// for all commands, and passed over.
func (s *settings) strangeFlag(name, kind string) error {
	var err error
	s.flags.Visit(func(f *pflag.Flag) {
		if err != nil || len(f.Annotations[fromVariable]) > 0 {
			return
		}
		_, ofPool := f.Value.(*knobFlag)
		ofSeries, _ := f.Value.(*seriesFlag)
		switch what := seriesText(name, kind); {
		case (ofPool || f.Name == "pool" || f.Name == "shard") && kind != kindFlake:
			err = ui.Bad("--%s is for series of kind %s, and %s", f.Name, kindFlake, what)
		case ofSeries != nil && !ofSeries.of(kind):
			err = ui.Bad("--%s is for series of kind %s, and %s", f.Name, strings.Join(ofSeries.kinds, ", "), what).
				Hint("--kind %s, if it is one", ofSeries.kinds[0])
		}
	})
	return err
}

func seriesText(name, kind string) string {
	if name == "" {
		return "this is a " + kind
	}
	return name + " is a " + kind
}

// countedDrawing fills in what there is to know of a series that is no flake.
func (s *settings) countedDrawing(d *drawing, one *seriesConfig) error {
	if d.name == "" {
		return ui.Bad("which series? One of kind %s has a name", d.kind).Hint("firn next NAME")
	}
	if d.kind == kindTicket {
		if f := s.flags.Lookup("store"); f != nil && f.Changed && len(f.Annotations[fromVariable]) == 0 {
			return ui.Bad("--store: the ticket %s has stores of its own, in firn.yaml", d.name)
		}
		if one == nil {
			return ui.Bad("a ticket is spread over several stores, which are in firn.yaml").
				Hint("series: { %s: { kind: ticket, stores: [URL, URL] } }", d.name)
		}
		d.urls = nil
		for _, url := range one.stores {
			d.urls = append(d.urls, url.text)
		}
	}
	from := map[string]string{}
	d.from = from
	for _, k := range seriesKeys {
		if !k.of(d.kind) {
			continue
		}
		var said entry
		if one != nil {
			said = one.keys[k.name]
		}
		v := s.value(k.flagName(), said, "")
		if from[k.name] = v.from; v.from == byDefault {
			continue
		}
		if err := k.set(&d.options, v.text); err != nil {
			return valueError(v.from, err)
		}
	}
	if c := s.counter; c != nil && d.kind == kindSerial && d.options.serial.Pattern == "" {
		d.options.serial.Pattern, d.options.serial.Zone = c.pattern, c.zone
	}
	if d.kind == kindSerial && d.options.serial.Pattern == "" {
		return ui.Bad("a serial has a pattern, and neither a flag nor firn.yaml says which").
			Hint("with the pattern of this serial: %s %s --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh", s.cmd.CommandPath(), phrase.ShellWord(d.name))
	}
	return d.check(from)
}

// check returns what the series would say of its options, with where they are from.
func (d *drawing) check(from map[string]string) error {
	var texts []string
	var shown *ui.Failure
	for _, f := range d.options.check(d.name, d.kind) {
		l := leasing{from: from}
		texts = append(texts, l.blame(f.option, f.text))
		if f.syntax != nil {
			shown = serialSyntax(from[f.option], f.syntax)
		}
	}
	switch {
	case texts == nil:
		return nil
	case shown != nil && len(texts) == 1:
		return shown
	}
	return ui.Bad("%s", strings.Join(texts, "\n"))
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
	if d.kind != kindFlake {
		ids.kind = d.kind
	}
	if d.form != nil {
		if ids.form, err = d.form.open(errs); err != nil {
			return nil, err
		}
		ids.spec = d.form
	}
	stores, closeStores, err := d.openStores(ctx, errs)
	if err != nil {
		return nil, err
	}
	if err := d.checkStores(ctx, stores); err != nil {
		return nil, errors.Join(d.explain(err), closeStores())
	}
	begins, err := d.begins(ctx, stores)
	if err != nil {
		return nil, errors.Join(d.explain(err), closeStores())
	}
	out := &stream{source: ids, rate: plenty}
	var series interface{ Close() error }
	switch d.kind {
	case kindFlake:
		var l *lease.Lease
		if l, err = d.leasing.open(ctx, stores[0], ui.Warnings(errs)); err == nil {
			ids.src, series, out.rate = l, l, l.State().Layout.Rate()
		}
	case kindSerial:
		d.options.serial.Logger = ui.Warnings(errs)
		var t *document.Series
		t, err = document.Open(ctx, stores[0], d.name, &d.options.serial)
		out.source, series = &textSource{src: t, json: asJSON}, t
	default:
		o := &d.options.segment
		o.Logger = ui.Warnings(errs)
		if o.MaxUnused == 0 { // a short run has no more in hand than it prints
			o.MaxUnused = int(max(min(n, block.DefaultMaxUnused), int64(o.Cache)))
		}
		var t *sequence.Series
		if d.kind == kindTicket {
			t, err = sequence.OpenAcross(ctx, stores, d.name, o)
		} else {
			t, err = sequence.Open(ctx, stores[0], d.name, o)
		}
		ids.src, series = t, t
	}
	if err != nil {
		return nil, errors.Join(d.explain(err), closeStores())
	}
	if begins {
		fmt.Fprintf(errs, "created the %s %s in %s: a new counter; %s shows those that were there\n", d.kind, d.name, open.Redact(storeText(d.urls[0])), d.hints.compose("firn "+d.kind+"s ls"))
	}
	out.close = func() error { return errors.Join(series.Close(), closeStores()) }
	return out, nil
}

// plenty is the rate of what waits for no clock.
const plenty = 1e9

// openStores opens the stores of a series.
func (d *drawing) openStores(ctx context.Context, errs io.Writer) ([]store.Store, func() error, error) {
	var all []store.Store
	var opened []*open.Store
	closeAll := func() error {
		var failed []error
		for _, s := range slices.Backward(opened) {
			failed = append(failed, s.Close())
		}
		return errors.Join(failed...)
	}
	for _, url := range d.urls {
		s, err := openURL(ctx, url, sayMade(errs))
		if err != nil {
			return nil, nil, errors.Join(d.at(url, err), closeAll())
		}
		all, opened = append(all, s), append(opened, s)
	}
	return all, closeAll, nil
}

// checkStores refuses to count in a copy of another store, where its pools tell: both would
// give the same numbers. A lease finds out by itself. And it refuses a name that is that of a
// counter of another kind, which a second counter would hide.
func (d *drawing) checkStores(ctx context.Context, stores []store.Store) error {
	if d.kind == kindFlake {
		return nil
	}
	for i, s := range stores {
		err := pool.CheckStore(ctx, s)
		if f := poolFailure(err, poolPlace{url: storeText(d.urls[i])}); f != nil {
			return f
		}
		if err == nil {
			err = d.sameKind(ctx, s)
		}
		if err != nil {
			return d.at(d.urls[i], err)
		}
	}
	return nil
}

// begins reports whether to open the series is to begin it, as in a file of this host: a name
// that was mistyped is a counter of its own.
func (d *drawing) begins(ctx context.Context, stores []store.Store) (bool, error) {
	if d.kind != kindSegment && d.kind != kindSerial {
		return false, nil
	}
	durability, err := stores[0].Durability(ctx)
	if err != nil || !durability.NoticesLoss {
		return false, err
	}
	if d.kind == kindSerial {
		_, err = document.Show(ctx, stores[0], d.name)
		return errors.As(err, new(*document.MissingError)), nil
	}
	_, err = sequence.Show(ctx, stores[0], d.name)
	return errors.As(err, new(*sequence.MissingError)), nil
}

// firstNumber is what a counter gives first that begins now.
func (d *drawing) firstNumber() firn.ID {
	return max(d.options.segment.First, 1)
}

// explain adds to an error of a series what can be done about it.
func (d *drawing) explain(err error) error {
	if d.leasing != nil {
		err = d.leasing.explain(err)
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
	if m := d.missingOf(err); m != nil && d.leasing == nil {
		for _, text := range missingHints([]*missing{m}) {
			f.Hint("%s", text)
		}
		return elsewhereFirst(err, f)
	}
	var copied *sqlite.CopyError
	var file *lease.GrantFileError
	var forgot *store.ForgotError
	var ended *sequence.EndError
	var mismatch *sequence.MismatchError
	var lossySegment *sequence.LossyError
	var lossySerial *document.LossyError
	var other *document.DefinitionError
	var used *document.EndError
	var instance *document.InstanceError
	switch {
	case errors.As(err, &copied), errors.As(err, &file):
		return f // what to do is said elsewhere
	case errors.As(err, &forgot) && d.kind == kindTicket && strings.HasSuffix(forgot.What, " stores have no record of it"):
		return f.Hint("%s", d.partly()).Hint("to see which store that is: firn doctor")
	case errors.As(err, &forgot), errors.As(err, &instance):
		hintRecover(f, url, "if the store was restored, replaced or failed over: stop every process that uses it, then: "+recoverCommand(url, forgot == nil))
		if note != "" {
			f.Hint("%s", note)
		}
		return f
	case errors.As(err, &lossySegment) && lossySegment.Since:
		return hintRecover(f.Hint("to see why the store may lose writes: firn doctor"), url, "if the store was restored, replaced or failed over: stop every process that uses it, then: "+recoverCommand(url, true))
	case errors.As(err, &lossySegment), errors.As(err, &lossySerial):
		return f.Hint("use a store that keeps what it acknowledged").
			Hint("only if repeated numbers do no harm, because numbers repeat when this store forgets: in firn.yaml: series: { %s: { kind: %s, on-lossy-store: may-repeat } }", d.name, d.kind).
			HintFlag("on-lossy-store", "the same for a series that firn.yaml does not list: --on-lossy-store may-repeat")
	case errors.As(err, &other):
		return d.hintDefinition(f, other)
	case errors.As(err, &mismatch):
		return hintMismatch(f, mismatch)
	case errors.As(err, &ended) && ended.Left > 0:
		return f.Hint("-n %d prints what is left", ended.Left)
	case errors.As(err, &used) && used.Left > 0:
		f.Hint("-n %d prints what is left", used.Left)
		fallthrough
	case errors.As(err, &used):
		return d.hintDigits(f, used.Pattern)
	}
	return f
}

// hintMismatch says what to do where a counter was created with another option.
func hintMismatch(f *ui.Failure, e *sequence.MismatchError) *ui.Failure {
	f.Hint("a counter keeps the %s that it was created with: leave out %s, or write %s", e.Option, e.Option, e.Have)
	first, err := strconv.ParseInt(e.Want, 10, 64)
	if e.Option == "first" && err == nil && first > 1 {
		f.Hint("to have the next numbers from %d on, where the counter is below: firn segments raise %s %d", first, phrase.ShellWord(e.Name), first-1)
	}
	return f.Hint("for numbers of their own, give the series another name")
}

// A placedError is the error of one of the stores of a series that has several.
type placedError struct {
	url string
	err error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// at says of which store an error is, where the series has several.
func (d *drawing) at(url string, err error) error {
	if err == nil || len(d.urls) == 1 {
		return err
	}
	return &placedError{url, err}
}

// recoverURL is the store that a hint about an error names, and a note that says what the
// placeholder URL stands for, where the hint has it. A ticket's stores are not the store that a
// command without --store means: that one may be healthy, and to recover it stops its programs.
func (d *drawing) recoverURL(err error) (url, note string) {
	if len(d.urls) == 1 {
		return storeText(d.urls[0]), ""
	}
	var placed *placedError
	var forgot *store.ForgotError
	if errors.As(err, &placed) {
		url = storeText(placed.url)
	} else if errors.As(err, &forgot) && slices.ContainsFunc(d.urls, func(u string) bool { return storeText(u) == forgot.Store }) {
		url = forgot.Store
	}
	switch {
	case url == "":
		return "URL", fmt.Sprintf("URL is the one of the stores of %s that has the problem: %s. To see which one: firn doctor", d.name, d.storeText())
	case withoutPassword(url) != url:
		return "URL", fmt.Sprintf("URL is the store %s of %s, with its password, which is not shown", open.Redact(url), d.name)
	}
	return url, ""
}

func zoneFlag(zone string) string {
	if zone == "" {
		return ""
	}
	return " --zone " + zone
}

// serialSyntax shows where a pattern or a text is wrong.
func serialSyntax(from string, e *firn.SyntaxError) *ui.Failure {
	if from == "" || from == byDefault {
		from = e.Kind
	}
	f := ui.Bad("%s: %s", from, e.Reason)
	f.Place = []string{fmt.Sprintf("%q", e.Text), strings.Repeat(" ", 1+quotedWidth(e.Text[:e.Offset])) + "^"}
	return f
}

// quotedWidth is how many columns a text takes between quotes.
func quotedWidth(s string) int { return len([]rune(fmt.Sprintf("%q", s))) - 2 }
