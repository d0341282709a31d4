package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/inspect"
	"github.com/firn-id/firn/public"
)

// Decoded is what an id says, read in one layout; or a document.
type Decoded struct {
	ID    firn.ID // 0 of a document that is no number
	Known bool    // a series of this server has ids like that; else it is a guess
	inspect.Reading

	Form     string          // the public form that the text is in; "": in none
	Text     string          // that was read
	Document document.Number // zero: it is none
	Series   string          // of a document; no other id says it

	decoder *inspect.Decoder // nil: it was read in no layout
}

// MarshalJSON writes one object, as "firn decode --json" does.
func (d Decoded) MarshalJSON() ([]byte, error) {
	if d.IsDocument() {
		return d.documentJSON()
	}
	dst := d.AppendJSON(nil, strconv.AppendInt(nil, int64(d.ID), 10))
	if d.Form == "" {
		return dst, nil
	}
	text, err := json.Marshal(d.Text) // the alphabet of a hashid may be anything
	dst = append(append(dst[:len(dst)-1], `,"form":"`...), d.Form...)
	return append(append(append(dst, `","text":`...), text...), '}'), err
}

// ahead is how far in the future the time of an id may be: clocks differ.
const ahead = 24 * time.Hour

// Decode says what an id says that this server may have issued: in each form and layout
// of the series that the session may decode, one answer for those that agree. No answer
// says which series it was: an id does not, where several share a pool. Only a document says
// it, and comes first. Where the id makes
// sense in none, it is read in Options.Layout, then in the presets that it may be of, and
// last as a plain number, so that there is an answer or an error.
//
// It costs as much as there are forms and layouts, however many names share them.
//
// Errors are those of [Session.Can], and of a text that is no id: a
// *firn.SyntaxError, or that of the only form there is.
func (x *Session) Decode(text string) ([]Decoded, error) {
	v := x.look()
	d := decoding{text: text, now: v.options.Now()}
	d.id, d.plain = firn.ParseID(text)
	allowed := 0
	for i := range v.decodes {
		if one := &v.decodes[i]; x.mayDecode(v, one) {
			allowed++
			d.as(one)
		}
	}
	if err := x.can(v, "*", Decode); err != nil && allowed == 0 {
		x.server.refused.Add(1)
		return nil, err
	}
	d.settle(d.now)
	if len(d.found) > 0 {
		return d.found, nil
	}
	if d.mistyped != nil {
		return nil, d.mistyped
	}
	if d.plain != nil {
		if d.unread != nil {
			return nil, d.unread
		}
		if d.form != nil && (allowed == 1 || d.begun) {
			return nil, d.form
		}
		return nil, d.plain
	}
	if l := v.options.Layout; l.IsValid() {
		d.in(d.id, inspect.NewDecoder(l), false)
	}
	if len(d.found) == 0 {
		for _, g := range inspect.NewGuesser(d.now).Append(nil, d.id) {
			d.in(d.id, g.Decoder, false)
		}
	}
	if len(d.found) == 0 {
		d.found = append(d.found, Decoded{ID: d.id})
	}
	return d.found, nil
}

// A decodable is what series have in common whose ids are read alike.
type decodable struct {
	form     public.Form
	formName string
	given    bool              // answers are in the form
	layout   *inspect.Decoder  // nil: none
	pattern  *document.Pattern // nil: they are no documents, or nobody knows how they are written
	texts    bool
	names    []string // that were given; of documents one
	others   bool     // so are other names
}

// decodables are those of a world.
func decodables(w *world) []decodable {
	type alike struct {
		form     public.Form
		given    bool
		layout   firn.Layout
		document string // the name of a document
	}
	var all []decodable
	at := map[alike]int{}
	of := func(s *Series) *decodable {
		one := alike{form: s.options.Form, given: s.options.Form != nil, layout: s.options.Layout}
		name := s.FormName()
		if !one.given {
			one.form, name = s.options.Reads, s.options.ReadsName
		}
		if s.options.Pattern != nil {
			one.document = s.name
		}
		if one.form == nil || reflect.TypeOf(one.form).Comparable() {
			if i, ok := at[one]; ok {
				return &all[i]
			}
			at[one] = len(all)
		}
		d := decodable{form: one.form, formName: name, given: one.given, pattern: s.options.Pattern, texts: s.texts}
		if one.layout.IsValid() {
			d.layout = inspect.NewDecoder(one.layout)
		}
		all = append(all, d)
		return &all[len(all)-1]
	}
	for _, name := range w.names {
		one := of(w.series[name])
		one.names = append(one.names, name)
	}
	if w.others.rest != nil {
		of(w.others.rest).others = true
	}
	return all
}

// mayDecode reports whether the session may decode the ids of any of the series.
func (x *Session) mayDecode(v *view, one *decodable) bool {
	may := func(name string) bool { return x.can(v, name, Decode) == nil }
	switch {
	case slices.ContainsFunc(one.names, may):
		return true
	case !one.others || v.token == nil:
		return one.others && may("*")
	}
	for name := range v.token.Rights {
		if v.series[name] == nil && may(name) {
			return true
		}
	}
	return false
}

// A decoding is of one text.
type decoding struct {
	text  string
	now   time.Time
	id    firn.ID
	plain error // why the text itself is no id; nil: it is id
	form  error // why it is none in a form
	begun bool  // it begins as that form says, such as with the prefix of a token
	found []Decoded

	unread error // why it is an opaque id that no series reads; nil: it does not look like one

	documents []Decoded
	mistyped  error // why it is no document of a series that it was meant to be of
}

// as reads the text as that of some series.
func (d *decoding) as(one *decodable) {
	if one.pattern != nil {
		d.asDocument(one)
	}
	if !one.given && d.plain == nil {
		d.in(d.id, one.layout, true)
		return
	}
	if one.form == nil {
		return
	}
	id, err := one.form.Parse(d.text)
	if err != nil {
		if errors.Is(err, public.ErrForged) || errors.As(err, new(*public.KeyError)) {
			d.refuse(err)
			return
		}
		var syntax *firn.SyntaxError
		begins := errors.As(err, &syntax) && syntax.Kind == "opaque" && strings.Contains(syntax.Text[:syntax.Offset], "_")
		if begins || one.given && !d.begun {
			d.form, d.begun = err, begins
		}
		return
	}
	if one.pattern != nil && d.asDocumentIn(one, id) {
		return
	}
	if !d.inForm(id, one) && (one.texts || one.layout == nil) {
		d.add(Decoded{ID: id, Known: true, Form: one.formName, Text: d.text}) // the number that the text hides; that of a counter has no layout
	}
}

// refuse takes note that a form reads the text as an opaque id, and has no key that wrote it for its series.
// Of several forms with different errors none is to blame.
func (d *decoding) refuse(err error) {
	if d.unread == nil {
		d.unread = err
	} else if d.unread.Error() != err.Error() {
		d.unread = errNoKey
	}
}

// errNoKey says that a text looks like an opaque id of several series, and is of none.
var errNoKey = fmt.Errorf("%w, or of a key or a series that this server does not have", public.ErrForged)

// inForm reads the id of a form in the layout of its series, and reports whether that makes sense.
func (d *decoding) inForm(id firn.ID, one *decodable) bool {
	before := len(d.found)
	if !d.in(id, one.layout, true) {
		return false
	}
	if len(d.found) > before {
		d.found[before].Form, d.found[before].Text = one.formName, d.text
	}
	return true
}

// in reads an id in a layout, and reports whether that makes sense.
func (d *decoding) in(id firn.ID, l *inspect.Decoder, known bool) bool {
	out := Decoded{ID: id, Known: known, Text: d.text, decoder: l}
	if l == nil || l.Decode(id, &out.Reading) != nil || out.Time.After(d.now.Add(ahead)) {
		return false
	}
	d.add(out)
	return true
}

func (d *decoding) add(one Decoded) {
	same := func(o Decoded) bool { return o.ID == one.ID && o.Layout == one.Layout }
	if !slices.ContainsFunc(d.found, same) {
		d.found = append(d.found, one)
	}
}
