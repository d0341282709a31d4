package console

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/firn-id/firn/server"
)

// A reading is an id in one layout, with what it takes to draw its bits.
type reading struct {
	ID     string  `json:"id"`
	Bits   string  `json:"bits"`             // 64 of 0 and 1
	Known  bool    `json:"known"`            // a series of this server has ids like that
	Layout string  `json:"layout,omitempty"` // none: a plain number
	Spec   string  `json:"spec,omitempty"`
	Time   string  `json:"time,omitempty"`
	Unix   int64   `json:"unix_ms,omitempty"`
	Fields []field `json:"fields,omitempty"` // from the highest bit down
	Same   string  `json:"same,omitempty"`   // what the same bits are in another layout that it may have
	Form   string  `json:"form,omitempty"`   // that the text is in

	// Of a document.
	Text   string `json:"text,omitempty"`
	Series string `json:"series,omitempty"`
	Period string `json:"period,omitempty"`
	Count  string `json:"count,omitempty"`
}

// A field is one of a layout; the time is one of them.
type field struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
	Shift int    `json:"shift"`
	Value string `json:"value"` // a text: it may be too large for JavaScript
}

// decode says what is in an id.
func (c *console) decode(session *server.Session, r *http.Request) (any, *refusal) {
	found, err := session.Decode(r.PathValue("id"))
	if err != nil {
		return nil, refuse(err)
	}
	var answer struct {
		Readings []reading `json:"readings"`
	}
	for _, d := range found {
		answer.Readings = append(answer.Readings, readingOf(d))
	}
	return answer, nil
}

func readingOf(d server.Decoded) reading {
	bits := strconv.FormatUint(uint64(d.ID)|1<<63, 2)
	r := reading{ID: d.ID.String(), Bits: "0" + bits[1:], Known: d.Known, Form: d.Form}
	if d.IsDocument() {
		r.Text, r.Series = d.Document.Text, d.Series
		r.Period, r.Count = d.Document.Period, strconv.FormatInt(d.Document.Count, 10)
	}
	if !d.Layout.IsValid() {
		return r
	}
	_, r.Same = d.SameBits()
	r.Layout, r.Spec, r.Time, r.Unix = d.Name, d.Layout.String(), d.TimeText(), d.Time.UnixMilli()
	for f := range d.Layout.Fields() {
		r.Fields = append(r.Fields, field{f.Name, f.Width, f.Shift, strconv.FormatInt(f.Of(d.ID), 10)})
	}
	slices.SortFunc(r.Fields, func(a, b field) int { return b.Shift - a.Shift })
	return r
}
