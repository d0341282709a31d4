package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// Decoded is what an id says, read in one layout.
type Decoded struct {
	ID     firn.ID
	Series string      // the first whose id it may be; "" where it is that of none
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

// Decode says what an id says that this server may have issued: in the form and the
// layout of each series that the session may decode, one answer for those that agree.
// Where it makes sense in none, it is read in Options.Layout, then in those that
// Options.Guess gives, and last as a plain number, so that there is an answer or an
// error.
//
// Errors are those of [Session.Can], and of a text that is no id: a
// *firn.SyntaxError, or that of the only form there is.
func (x *Session) Decode(text string) ([]Decoded, error) {
	v := x.look()
	series := x.All(Decode)
	if err := x.can(v, "*", Decode); err != nil && len(series) == 0 {
		x.server.refused.Add(1)
		return nil, err
	}
	d := decoding{text: text, now: v.options.Now(), seen: map[decodedAs]bool{}}
	d.id, d.plain = firn.ParseID(text)
	for _, s := range series {
		d.as(s)
	}
	if len(d.found) > 0 {
		return d.found, nil
	}
	if d.plain != nil {
		if d.form != nil && len(series) == 1 {
			return nil, d.form
		}
		return nil, d.plain
	}
	d.in("", d.id, v.options.Layout)
	if len(d.found) == 0 && v.options.Guess != nil {
		for _, l := range v.options.Guess(d.id) {
			d.in("", d.id, l)
		}
	}
	if len(d.found) == 0 {
		d.found = append(d.found, Decoded{ID: d.id})
	}
	return d.found, nil
}

// A decoding is of one text.
type decoding struct {
	text  string
	now   time.Time
	id    firn.ID
	plain error // why the text itself is no id; nil: it is id
	form  error // why it is none in a form
	seen  map[decodedAs]bool
	found []Decoded
}

type decodedAs struct {
	id     firn.ID
	layout firn.Layout
}

// as reads the text as that of a series.
func (d *decoding) as(s *Series) {
	f := s.options.Form
	if f == nil {
		if d.plain == nil {
			d.in(s.name, d.id, s.options.Layout)
		}
		return
	}
	id, err := f.Parse(d.text)
	if err != nil {
		d.form = err
		return
	}
	if !d.in(s.name, id, s.options.Layout) && s.texts {
		d.add(Decoded{ID: id, Series: s.name}) // the number that the text hides
	}
}

// in reads an id in a layout, and reports whether that makes sense.
func (d *decoding) in(series string, id firn.ID, l firn.Layout) bool {
	p, err := l.Decode(id)
	if err != nil || p.Time.After(d.now.Add(ahead)) {
		return false
	}
	out := Decoded{ID: id, Series: series, Layout: l, Time: p.Time}
	for f := range l.Fields() {
		if f.Name != "time" {
			out.Fields = append(out.Fields, FieldValue{f.Name, f.Of(id)})
		}
	}
	d.add(out)
	return true
}

func (d *decoding) add(one Decoded) {
	as := decodedAs{one.ID, one.Layout}
	if !d.seen[as] {
		d.seen[as] = true
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
	if d.Series != "" {
		b = append(append(append(b, `,"series":"`...), d.Series...), '"')
	}
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
