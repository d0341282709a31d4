package httpapi

import (
	"encoding/binary"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

// A media is a form that issued values can be answered in.
type media struct {
	accept   [3]string // what matches it, the most particular first
	header   []string  // its type as a header has it
	numbers  bool      // it is for numbers only
	appendTo func(dst []byte, a *issued) []byte
}

// issued is what an answer is made of.
type issued struct {
	series string
	form   string // the public form of the values; "": they have none
	ids    bool   // the session may decode them, so it is told the ids too
	values []server.Value
}

// The forms, the default first.
var medias = []*media{
	{accept: [3]string{"application/json", "application/*", "*/*"}, header: jsonType, appendTo: appendJSON},
	{accept: [3]string{"text/plain", "text/*", "*/*"}, header: textType, appendTo: appendLines},
	{accept: [3]string{"application/octet-stream", "application/*", "*/*"}, header: bytesType, appendTo: appendBytes, numbers: true},
}

// choose returns the form that an Accept header prefers, nil if it takes none.
func choose(accept []string) *media {
	if len(accept) == 0 || len(accept) == 1 && (accept[0] == "*/*" || accept[0] == "") {
		return medias[0]
	}
	header := strings.Join(accept, ",")
	for _, m := range medias {
		if header == m.accept[0] {
			return m // as nearly everybody asks
		}
	}
	var best *media
	var most float64
	for _, m := range medias {
		if q := m.quality(header); q > most {
			best, most = m, q
		}
	}
	return best
}

// quality is how welcome the form is to an Accept header: 0 is not at all. The most
// particular of the ranges that match it decides.
func (m *media) quality(header string) float64 {
	quality, particular := 0.0, len(m.accept)
	for part := range strings.SplitSeq(header, ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		for i, pattern := range m.accept[:particular] {
			if kind != pattern {
				continue
			}
			particular, quality = i, 1
			if q, ok := parameters["q"]; ok {
				quality, _ = strconv.ParseFloat(q, 64)
			}
			break
		}
	}
	return quality
}

func appendJSON(dst []byte, a *issued) []byte {
	dst = append(dst, `{"series":`...)
	dst = strconv.AppendQuote(dst, a.series) // a name is of letters, digits and a few signs
	dst = append(dst, `,"values":[`...)
	for i, v := range a.values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.Text != "" {
			dst = appendText(dst, v.Text)
			continue
		}
		dst = appendQuoted(dst, v.ID)
	}
	if dst = append(dst, ']'); a.form != "" {
		dst = appendText(append(dst, `,"form":`...), a.form)
	}
	if a.form != "" && a.ids {
		dst = append(dst, `,"ids":[`...)
		for i, v := range a.values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, v.ID)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// appendQuoted appends an id as JSON has it: a string, because JavaScript would round it.
func appendQuoted(dst []byte, id firn.ID) []byte {
	return append(strconv.AppendInt(append(dst, '"'), int64(id), 10), '"')
}

func appendLines(dst []byte, a *issued) []byte {
	for _, v := range a.values {
		dst = append(appendPlain(dst, v), '\n')
	}
	return dst
}

func appendBytes(dst []byte, a *issued) []byte {
	for _, v := range a.values {
		dst = binary.BigEndian.AppendUint64(dst, uint64(number(v)))
	}
	return dst
}

// number is the value of a series that answers with numbers. One that became another
// by a reload, after it was looked at, ends the connection: no answer, and no log.
func number(v server.Value) firn.ID {
	id, ok := v.Number()
	if !ok {
		panic(http.ErrAbortHandler)
	}
	return id
}

func appendNumber(dst []byte, v server.Value) []byte {
	return strconv.AppendInt(dst, int64(number(v)), 10)
}

// appendPlain appends a value as it is.
func appendPlain(dst []byte, v server.Value) []byte {
	if v.Text != "" {
		return append(dst, v.Text...)
	}
	return strconv.AppendInt(dst, int64(v.ID), 10)
}
