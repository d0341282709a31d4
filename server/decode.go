package server

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

// Decoded is what an id says, read in one layout.
type Decoded struct {
	ID     firn.ID
	Known  bool        // a series of this server has ids like that; else it is a guess
	Layout firn.Layout // zero: the id is a plain number and says nothing
	Time   time.Time   // when its tick began, UTC
	Fields []FieldValue
}

// A FieldValue is a field of a layout besides the time, and what an id has in it.
type FieldValue struct {
	Name  string
	Value int64
}

// ahead is how far in the future the time of an id may be: clocks differ.
const ahead = 24 * time.Hour

// Decode says what an id says that this server may have issued: in each form and layout
// of the series that the session may decode, one answer for those that agree. No answer
// says which series it was: an id does not, where several share a pool. Where it makes
// sense in none, it is read in Options.Layout, then in those that Options.Guess gives, and
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
	if len(d.found) > 0 {
		return d.found, nil
	}
	if d.plain != nil {
		if d.form != nil && (allowed == 1 || d.begun) {
			return nil, d.form
		}
		return nil, d.plain
	}
	d.in(d.id, v.options.Layout, false)
	if len(d.found) == 0 && v.options.Guess != nil {
		for _, l := range v.options.Guess(d.id) {
			d.in(d.id, l, false)
		}
	}
	if len(d.found) == 0 {
		d.found = append(d.found, Decoded{ID: d.id})
	}
	return d.found, nil
}

// A decodable is what series have in common whose ids are read alike.
type decodable struct {
	form   public.Form
	layout firn.Layout
	texts  bool
	names  []string // that were given
	others bool     // so are other names
}

// decodables are those of a world.
func decodables(w *world) []decodable {
	type alike struct {
		form   public.Form
		layout firn.Layout
	}
	var all []decodable
	at := map[alike]int{}
	of := func(s *Series) *decodable {
		one := alike{s.options.Form, s.options.Layout}
		if one.form == nil || reflect.TypeOf(one.form).Comparable() {
			if i, ok := at[one]; ok {
				return &all[i]
			}
			at[one] = len(all)
		}
		all = append(all, decodable{form: one.form, layout: one.layout, texts: s.texts})
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
}

// as reads the text as that of some series.
func (d *decoding) as(one *decodable) {
	if one.form == nil {
		if d.plain == nil {
			d.in(d.id, one.layout, true)
		}
		return
	}
	id, err := one.form.Parse(d.text)
	if err != nil {
		var syntax *firn.SyntaxError
		begins := errors.As(err, &syntax) && syntax.Kind == "token" && strings.Contains(syntax.Text[:syntax.Offset], "_")
		if begins || !d.begun {
			d.form, d.begun = err, begins
		}
		return
	}
	if !d.in(id, one.layout, true) && (one.texts || !one.layout.IsValid()) {
		d.add(Decoded{ID: id, Known: true}) // the number that the text hides; that of a counter has no layout
	}
}

// in reads an id in a layout, and reports whether that makes sense.
func (d *decoding) in(id firn.ID, l firn.Layout, known bool) bool {
	p, err := l.Decode(id)
	if err != nil || p.Time.After(d.now.Add(ahead)) {
		return false
	}
	out := Decoded{ID: id, Known: known, Layout: l, Time: p.Time}
	for f := range l.Fields() {
		if f.Name != "time" {
			out.Fields = append(out.Fields, FieldValue{f.Name, f.Of(id)})
		}
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

// LayoutName returns the name of the layout: a preset's, or the spec. "" where the
// id is a plain number.
func (d Decoded) LayoutName() string {
	if !d.Layout.IsValid() {
		return ""
	}
	for name, l := range firn.Presets() {
		if l == d.Layout {
			return name
		}
	}
	return d.Layout.String()
}

// TimeText returns the time as RFC 3339 in UTC, as fine as the layout's tick. ""
// where the id is a plain number.
func (d Decoded) TimeText() string {
	if !d.Layout.IsValid() {
		return ""
	}
	digits := max(decimals(int64(d.Layout.Unit())), decimals(int64(d.Layout.Epoch().Nanosecond())))
	if digits == 0 {
		return d.Time.Format(time.RFC3339)
	}
	return d.Time.Format("2006-01-02T15:04:05." + strings.Repeat("0", digits) + "Z07:00")
}

// decimals is how many decimals of a second it takes to write ns.
func decimals(ns int64) int {
	n := 9
	for ; n > 0 && ns%10 == 0; n-- {
		ns /= 10
	}
	return n
}

// MarshalJSON writes one object, as "firn decode --json" does: id, layout, time,
// unix_ms and the other fields by their names; of a plain number, the id alone.
func (d Decoded) MarshalJSON() ([]byte, error) {
	b := append([]byte(`{"id":"`), d.ID.String()...)
	b = append(b, '"')
	if d.Layout.IsValid() {
		b = append(append(append(b, `,"layout":"`...), d.LayoutName()...), '"')
		b = append(append(append(b, `,"time":"`...), d.TimeText()...), '"')
		b = strconv.AppendInt(append(b, `,"unix_ms":`...), d.Time.UnixMilli(), 10)
	}
	for _, f := range d.Fields {
		b = append(append(append(b, `,"`...), f.Name...), `":`...)
		b = strconv.AppendInt(b, f.Value, 10)
	}
	return append(b, '}'), nil
}
