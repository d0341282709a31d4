package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/inspect"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
)

// A formReader reads ids in the public form of a series, or in that of --as.
type formReader struct {
	public.Form
	name    string // of the form
	series  string
	number  bool             // its text may as well be a plain id
	counted bool             // ids of the series are counted: no layout says anything of them
	pattern *documentReader  // of a document whose numbers they are; nil: they are of none
	layout  *inspect.Decoder // of the series; nil: it is not known
	certain bool             // it is, whatever an id looks like in it
}

// withForm has the decoder read the form that spec says, and no other.
func (d *decoder) withForm(spec *config.Form, file *config.File) error {
	f, err := spec.Open(warnOn(d.errs))
	if err != nil {
		return err
	}
	d.asked = newFormReader(f, spec, file)
	return nil
}

// withForms has the decoder read the public forms of a config besides plain ids.
// One that cannot be opened is left out: whoever reads plain ids need not be allowed
// to read the keys.
func (d *decoder) withForms(set *settings) {
	warned := map[string]bool{} // of a source of keys, which may be that of many series
	for i := range set.File.Series {
		spec := set.File.Series[i].Public
		if spec == nil {
			continue
		}
		spec, err := set.WithKeys(spec)
		var f public.Form
		if err == nil {
			warn := warnOn(d.errs)
			if source := spec.Values["keys"]; source != "" && warned[source] {
				warn = nil
			} else {
				warned[source] = true
			}
			f, err = spec.Open(warn)
		}
		if err != nil {
			name := set.File.Series[i].Name.Text
			ui.PrintWarning(d.errs, "series %s: its public form is not read: %s", name, err)
			if set.File.Series[i].Public.Kind.Name == "opaque" {
				d.unread = append(d.unread, unreadForm{name, set.File.Series[i].Public.Values["prefix"], set.File.Path, err})
			}
			continue
		}
		r := newFormReader(f, spec, set.File)
		if r.number {
			d.numbers = append(d.numbers, r)
		}
		d.forms = append(d.forms, r)
	}
}

// An unreadForm is the form opaque of a series in firn.yaml whose keys could not be read.
type unreadForm struct {
	series, prefix, file string
	err                  error
}

// hint says what is missing to read a text that may be of the form.
func (u *unreadForm) hint(text string) string {
	var keys *config.KeysError
	if errors.As(u.err, &keys) && keys.Source == "" {
		return fmt.Sprintf("if it is an opaque id of series %s, its keys are missing: write public: { form: opaque, keys: FILE } for it in %s; or once: firn decode --series %s --keys FILE %s",
			u.series, u.file, phrase.ShellWord(u.series), phrase.ShellWord(text))
	}
	return fmt.Sprintf("if it is an opaque id of series %s: that form is not read, because %s", u.series, u.err)
}

// newFormReader makes the reader of a form that was opened; file may be nil.
func newFormReader(f public.Form, spec *config.Form, file *config.File) *formReader {
	r := &formReader{Form: f, name: spec.Kind.Name, series: spec.Series, number: spec.Kind.Number()}
	if file == nil {
		return r
	}
	one, err := file.SeriesNamed(spec.Series)
	if err != nil {
		return r // another process's series
	}
	if one.Kind.Text != "flake" {
		r.counted, r.pattern = true, documentOf(one)
		return r
	}
	switch pool, err := file.PoolOf(one); {
	case err != nil:
	case pool != nil:
		r.layout, r.certain = inspect.NewDecoder(pool.Layout()), true
	default:
		r.layout = inspect.NewDecoder(firn.Default())
	}
	return r
}

// inForm writes to d.line what an id says that was read in a form.
func (d *decoder) inForm(r *formReader, id firn.ID, text []byte) error {
	d.form, d.id = r, id
	n, err := d.numberOf(r, id)
	switch {
	case err != nil:
		return err
	case n != nil:
		d.certain = true
		d.appendDocument(text, n)
	case r.counted && !d.insist:
		d.appendBare(text)
	case r.layout != nil && !d.insist && (r.certain || r.layout.Plausible(id, d.now)):
		if err := r.layout.Decode(id, &d.reading); err != nil {
			return err
		}
		d.certain = true
		d.append(text, false)
	default:
		before := len(d.line)
		if err := d.inLayouts(text); err != nil && len(d.line) == before {
			if d.insist {
				return err
			}
			d.appendBare(text) // the id itself is what was asked for
		}
	}
	return nil
}

// inForms reads what is not a plain id, for the reason err: in the forms of the
// config, in other people's, and in the encodings that need no key. Mistyped is why it is no
// document of a series that it was meant to be of.
func (d *decoder) inForms(text []byte, err, mistyped error) error {
	hits, refused := d.hits(string(text))
	read := 0
	for _, h := range hits {
		if err := d.inForm(h.formReader, h.id, text); err == nil {
			read++
		} else if refused == nil {
			refused = err
		}
	}
	if read > 0 {
		d.certain = d.certain && read == 1
		return nil
	}
	d.form = nil
	if mistyped != nil {
		return mistyped
	}
	switch foreign, foreignErr := d.foreign(text); {
	case foreign:
		return foreignErr
	case telling(refused) == 0 && d.inEncodings(text): // it does not begin as a form of the config does
		if wordy.Match(text) {
			d.line = d.line[:0]
			return ui.Bad("%.*q is no id: it looks like words and numbers", shownLine, text).
				Hint("if it is the text of a document: firn decode --pattern PATTERN %.*s", shownLine, phrase.ShellWord(string(text))).
				Hint("only if it is an id in an encoding: firn decode --as base64url %.*s, or another of firn public encode --help", shownLine, phrase.ShellWord(string(text)))
		}
		return nil
	case refused == nil:
		return err
	case len(d.forms) > 1 && telling(refused) < certainly:
		return ui.Bad("%.*q is no id, and in the public form of no series in firn.yaml", shownLine, text).
			Hint("to see why it is not of one: firn decode --series SERIES %.*s", shownLine, phrase.ShellWord(string(text)))
	}
	return refused
}

// wordy is how a text looks that a person wrote: a word, or words and numbers with - or _ between them. Nearly each of
// them can be read in some encoding, and hardly any id has none but such letters and digits.
var wordy = regexp.MustCompile(`^(?:[A-Za-z]?[a-z]+|[A-Z]+)(?:[-_](?:[A-Za-z]?[a-z]+|[A-Z]+|[0-9]+))*$`)

// A hit is an id that a form read.
type hit struct {
	*formReader
	id firn.ID
}

// hits reads a text in the forms of the config. If it may be of one series, those
// of which it cannot well be are left out: nearly every text can be read as a cipher.
// The error is that of the form which came furthest.
func (d *decoder) hits(text string) (hits []hit, refused error) {
	for _, r := range d.forms {
		id, err := r.Parse(text)
		if err == nil {
			hits = append(hits, hit{r, id})
		} else if refused == nil || telling(err) > telling(refused) {
			refused = err
		}
	}
	absurd := func(h hit) bool { return !h.plausible(h.id, d.now) }
	if likely := slices.DeleteFunc(slices.Clone(hits), absurd); len(likely) > 0 {
		hits = likely
	}
	return hits, refused
}

// telling says how much the error of a form says of a text: most if the text is
// certainly of the form, else how far it was.
func telling(err error) int {
	var syntax *firn.SyntaxError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &syntax) && (syntax.Kind != "opaque" || syntax.Offset == 0): // behind its prefix
		return syntax.Offset
	}
	return certainly
}

const certainly = maxLine

// asNumbers adds the readings of a number in the forms whose texts are numbers.
func (d *decoder) asNumbers(text []byte) {
	for _, r := range d.numbers {
		id, err := r.Parse(string(text))
		if err != nil || !r.plausible(id, d.now) {
			continue
		}
		if err := d.inForm(r, id, text); err == nil {
			d.certain = false
		}
	}
	d.form = nil
}

// plausible reports whether what was read as an id of the series may be one.
func (r *formReader) plausible(id firn.ID, now time.Time) bool {
	const counted = 1 << 53 // nobody counts as far
	switch {
	case r.name == "opaque": // nobody else can have made it
		return true
	case r.pattern != nil && r.pattern.IsNumeric():
		_, err := r.pattern.ParseID(id)
		return err == nil
	case r.counted:
		return id < counted
	case r.layout != nil:
		return r.layout.Plausible(id, now)
	}
	return true
}

// inEncodings reads a text in each encoding in which it makes sense, the most
// plausible first, and reports whether there is one.
func (d *decoder) inEncodings(text []byte) bool {
	type spelling struct {
		inspect.Guess
		form *formReader
		id   firn.ID
	}
	var hits []spelling
	for _, e := range public.Encodings() {
		id, err := e.Parse(string(text))
		if err != nil || e == public.Decimal {
			continue
		}
		if best, ok := d.best(id); ok {
			hits = append(hits, spelling{best, &formReader{Form: e, name: e.String()}, id})
		}
	}
	slices.SortStableFunc(hits, func(a, b spelling) int { return cmp.Compare(a.Bits, b.Bits) })
	for _, h := range hits {
		if err := h.Decode(h.id, &d.reading); err == nil {
			d.form, d.id = h.form, h.id
			d.append(text, true)
		}
	}
	d.form = nil
	return len(d.line) > 0
}

// best returns the layout in which an id makes most sense: that of --layout, that of
// a pool, or a preset.
func (d *decoder) best(id firn.ID) (inspect.Guess, bool) {
	if d.known != nil {
		return inspect.Guess{Decoder: d.known}, d.known.Plausible(id, d.now)
	}
	for _, r := range d.pools {
		if r.Plausible(id, d.now) {
			return inspect.Guess{Decoder: r}, true
		}
	}
	d.guesses = d.presets.Append(d.guesses[:0], id)
	if len(d.guesses) == 0 {
		return inspect.Guess{}, false
	}
	return d.guesses[0], true
}

// appendBare appends an id that no layout says anything of.
func (d *decoder) appendBare(text []byte) {
	if d.json {
		d.line = append(d.line, `{"id":"`...)
		d.line = strconv.AppendInt(d.line, int64(d.id), 10)
		d.line = appendFormJSON(append(d.line, '"'), d.form.name, d.form.series, string(text))
		d.line = append(d.line, "}\n"...)
		return
	}
	if !d.alone {
		d.line = append(append(d.line, text...), "  "...)
	}
	d.line = append(d.form.appendText(d.line, d.id), '\n')
}

// appendForm appends to a reading in which form it was, in the place of the end of
// its line.
func (d *decoder) appendForm(text []byte) {
	if d.json {
		d.line = bytes.TrimSuffix(d.line, []byte("}\n"))
		d.line = appendFormJSON(d.line, d.form.name, d.form.series, string(text))
		d.line = append(d.line, "}\n"...)
		return
	}
	d.line = append(bytes.TrimSuffix(d.line, []byte("\n")), "  "...)
	d.line = append(d.form.appendText(d.line, d.id), '\n')
}

// appendText appends the id, and in which form and of which series it is.
func (r *formReader) appendText(dst []byte, id firn.ID) []byte {
	dst = strconv.AppendInt(append(dst, "id="...), int64(id), 10)
	dst = append(append(dst, " form="...), r.name...)
	if r.series != "" {
		dst = append(append(dst, " series="...), r.series...)
	}
	return dst
}

// print adds to the fields of a single id in which form it was.
func (r *formReader) print(w io.Writer, id firn.ID) error {
	b := fmt.Appendf(nil, "\n    %-12s%d\n    %-12s%s\n", "id", int64(id), "form", r.name)
	if r.series != "" {
		b = fmt.Appendf(b, "    %-12s%s\n", "series", r.series)
	}
	_, err := w.Write(b)
	return err
}
