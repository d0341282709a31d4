// Package inspect says what is in an id: when it was made, by which worker, and which of that
// worker's ids it is.
//
// An id does not say which layout it is of. A [Decoder] reads ids in one; a [Guesser] says in
// which of the known layouts an id makes sense, the most plausible first. [Foreign] reads
// UUIDs, ULIDs, ObjectIds and TIDs, which are known by their shape.
//
// Nothing here asks a store, or a clock.
package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A Reading is what an id says if it has a certain layout or form. The zero Reading is that of a
// plain number, which says nothing.
type Reading struct {
	Name   string      // of the layout, or its spec; or of another form, such as uuidv7
	Layout firn.Layout // zero: another form
	Time   time.Time   // when its tick began, UTC; zero: the id carries none
	Tick   firn.Tick   // since the layout's epoch
	Fields []Field     // besides the time, as the layout has them, high bits first

	decimals int // of a second, that the time is written with

	id   firn.ID  // where Layout is set
	same *Decoder // what SameBits speaks of
}

// A Field is one field of an id: a number, or a text where it has one.
type Field struct {
	Name   string
	Number int64
	Text   string // letters and digits only
}

// Value is the field's text or number.
func (f Field) Value() string { return string(f.appendValue(nil)) }

func (f Field) appendValue(dst []byte) []byte {
	if f.Text != "" {
		return append(dst, f.Text...)
	}
	return strconv.AppendInt(dst, f.Number, 10)
}

// TimeText is the time as RFC 3339 in UTC, as fine as a tick: with two digits where a tick is
// 10 ms, unless the epoch has more. It is "" for what carries no time.
func (r *Reading) TimeText() string {
	if r.Time.IsZero() {
		return ""
	}
	return string(r.appendTime(nil))
}

func (r *Reading) appendTime(dst []byte) []byte {
	if r.decimals == 0 {
		return r.Time.AppendFormat(dst, time.RFC3339)
	}
	return r.Time.AppendFormat(dst, "2006-01-02T15:04:05."+strings.Repeat("0", r.decimals)+"Z07:00")
}

// AppendText appends the time and the fields on one line, and [Reading.SameBits]:
// 2026-11-20T12:00:00.000Z  worker=1 seq=7.
func (r *Reading) AppendText(dst []byte) []byte {
	if r.Time.IsZero() {
		dst = append(dst, "no time"...)
	} else {
		dst = r.appendTime(dst)
	}
	for i, f := range r.Fields {
		dst = append(dst, ' ')
		if i == 0 {
			dst = append(dst, ' ')
		}
		dst = f.appendValue(append(append(dst, f.Name...), '='))
	}
	if r.same != nil {
		dst = r.appendSameBits(append(dst, "  same bits as "...))
	}
	return dst
}

// AppendJSON appends one object: id, which is the id as it was given, layout, time, unix_ms
// and the other fields by their names; of what carries no time, neither of these two. same_bits
// is the name of the preset that [Reading.SameBits] speaks of.
func (r *Reading) AppendJSON(dst, id []byte) []byte {
	// Names and texts have no character that JSON would escape.
	dst = append(append(append(dst, `{"id":"`...), id...), '"')
	if r.Name != "" {
		dst = append(append(append(dst, `,"layout":"`...), r.Name...), '"')
	}
	if !r.Time.IsZero() {
		dst = append(r.appendTime(append(dst, `,"time":"`...)), `","unix_ms":`...)
		dst = strconv.AppendInt(dst, r.Time.UnixMilli(), 10)
	}
	for _, f := range r.Fields {
		dst = append(append(append(dst, `,"`...), f.Name...), `":`...)
		if f.Text != "" {
			dst = append(append(append(dst, '"'), f.Text...), '"')
			continue
		}
		dst = strconv.AppendInt(dst, f.Number, 10)
	}
	if r.same != nil {
		dst = append(append(append(dst, `,"same_bits":"`...), r.same.name...), '"')
	}
	return append(dst, '}')
}

// A Decoder reads ids of one layout. Make one and use it for many ids; it is safe for concurrent
// use.
type Decoder struct {
	layout   firn.Layout
	name     string
	decimals int
	fields   []firn.Field // besides the time
	same     *Decoder     // of a guess: see SameBits
}

// NewDecoder returns the decoder of a valid layout.
func NewDecoder(l firn.Layout) *Decoder {
	d := &Decoder{layout: l, name: l.Name(), decimals: max(decimalsOf(int64(l.Unit())), decimalsOf(int64(l.Epoch().Nanosecond())))}
	if d.name == "" {
		d.name = l.String()
	}
	for f := range l.Fields() {
		if f.Name != "time" {
			d.fields = append(d.fields, f)
		}
	}
	return d
}

// Layout returns the layout of the decoder.
func (d *Decoder) Layout() firn.Layout { return d.layout }

// Name returns the name of the layout, or its text if it has no name.
func (d *Decoder) Name() string { return d.name }

// Decode sets into to what an id says, and reuses the memory of into. Its error is that of
// [firn.Layout.Decode].
func (d *Decoder) Decode(id firn.ID, into *Reading) error {
	p, err := d.layout.Decode(id)
	if err != nil {
		return err
	}
	fields := slices.Grow(into.Fields[:0], len(d.fields))
	for _, f := range d.fields {
		fields = append(fields, Field{Name: f.Name, Number: f.Of(id)})
	}
	*into = Reading{Name: d.name, Layout: d.layout, Time: p.Time, Tick: p.Tick, Fields: fields, decimals: d.decimals, id: id, same: d.same}
	return nil
}

// decimalsOf is how many decimals of a second it takes to write ns.
func decimalsOf(ns int64) int {
	n := 9
	for ; n > 0 && ns%10 == 0; n-- {
		ns /= 10
	}
	return n
}
