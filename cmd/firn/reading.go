package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A reading is what an id says if it is of some layout or form.
type reading struct {
	layout string // its name or spec, or the name of a form such as uuidv7
	time   time.Time
	stamp  string // how time is written: as fine as a tick
	tick   firn.Tick
	parts  []part // the fields besides the time, high bits first
}

// A part is one field: a number, or a text where it has one.
type part struct {
	name   string
	number int64
	text   string
}

// A layoutReader reads ids in one layout. It is made once, for many ids.
type layoutReader struct {
	layout firn.Layout
	name   string
	stamp  string
	fields []firn.Field // besides the time
}

func newLayoutReader(l firn.Layout) *layoutReader {
	r := &layoutReader{layout: l, name: layoutName(l), stamp: stampOf(l)}
	for f := range l.Fields() {
		if f.Name != "time" {
			r.fields = append(r.fields, f)
		}
	}
	return r
}

// read fills into with what id says.
func (r *layoutReader) read(id firn.ID, into *reading) error {
	p, err := r.layout.Decode(id)
	if err != nil {
		return err
	}
	into.layout, into.stamp = r.name, r.stamp
	into.time, into.tick = p.Time, p.Tick
	into.parts = into.parts[:0]
	for _, f := range r.fields {
		into.parts = append(into.parts, part{name: f.Name, number: f.Of(id)})
	}
	return nil
}

// stampOf is the format of a layout's times: RFC 3339 in UTC, as fine as its
// ticks are. A tick of 10 ms has two digits, unless the epoch has more.
func stampOf(l firn.Layout) string {
	return stampDigits(max(digitsOf(int64(l.Unit())), digitsOf(int64(l.Epoch().Nanosecond()))))
}

func stampDigits(n int) string {
	if n == 0 {
		return time.RFC3339
	}
	return "2006-01-02T15:04:05." + strings.Repeat("0", n) + "Z07:00"
}

// digitsOf is how many decimals of a second it takes to write ns.
func digitsOf(ns int64) int {
	digits := 9
	for ; digits > 0 && ns%10 == 0; digits-- {
		ns /= 10
	}
	return digits
}

// appendJSON appends the reading as one line of JSON. Names and texts have no
// character that JSON would escape.
func (r *reading) appendJSON(dst, id []byte) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","layout":"`...)
	dst = append(dst, r.layout...)
	dst = append(dst, `","time":"`...)
	dst = r.time.AppendFormat(dst, r.stamp)
	dst = append(dst, `","unix_ms":`...)
	dst = strconv.AppendInt(dst, r.time.UnixMilli(), 10)
	for _, p := range r.parts {
		dst = append(dst, `,"`...)
		dst = append(dst, p.name...)
		dst = append(dst, `":`...)
		if p.text != "" {
			dst = append(dst, '"')
			dst = append(dst, p.text...)
			dst = append(dst, '"')
			continue
		}
		dst = strconv.AppendInt(dst, p.number, 10)
	}
	return append(dst, "}\n"...)
}

// appendText appends the time and the fields, without the end of the line.
func (r *reading) appendText(dst []byte) []byte {
	dst = r.time.AppendFormat(dst, r.stamp)
	for i, p := range r.parts {
		dst = append(dst, ' ')
		if i == 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, p.name...)
		dst = append(dst, '=')
		dst = p.appendValue(dst)
	}
	return dst
}

func (p part) appendValue(dst []byte) []byte {
	if p.text != "" {
		return append(dst, p.text...)
	}
	return strconv.AppendInt(dst, p.number, 10)
}

// print writes the reading of one id for a person, a field a line.
func (r *reading) print(w io.Writer, id string) error {
	b := fmt.Appendf(nil, "%s in layout %s\n\n", id, r.layout)
	b = fmt.Appendf(b, "    %-12s%s   (tick %d)\n", "time", r.time.Format(r.stamp), r.tick)
	for _, p := range r.parts {
		b = fmt.Appendf(b, "    %-12s%s\n", p.name, p.appendValue(nil))
	}
	_, err := w.Write(b)
	return err
}
