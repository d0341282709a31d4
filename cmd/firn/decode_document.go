package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/ui"
)

// A documentReader reads texts of a series in firn.yaml, or of --pattern.
type documentReader struct {
	*document.Pattern
	series string // "": it is not known
}

// A documentRead is a document that was read.
type documentRead struct {
	document.Number
	*documentReader
}

// documentOf is the reader of a series in firn.yaml; nil where that is no document.
func documentOf(one *config.Written) *documentReader {
	p, err := document.ParsePattern(one.Pattern())
	if one.Kind.Text != config.Document || err != nil {
		return nil
	}
	return &documentReader{p, one.Name.Text}
}

// withDocuments takes the documents of a config.
func (d *decoder) withDocuments(file *config.File) {
	for i := range file.Series {
		if one := documentOf(&file.Series[i]); one != nil {
			d.documents = append(d.documents, one)
		}
	}
}

// withPattern has the decoder read documents of --pattern, and nothing else.
func (d *decoder) withPattern(text string, layout firn.Layout) error {
	switch {
	case text == "":
		return nil
	case layout.IsValid():
		return ui.Bad("--pattern and --layout: what is read is a document or an id, and not both")
	}
	p, err := document.ParsePattern(text)
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		return documentSyntax("--pattern", syntax)
	}
	d.documents, d.insist = []*documentReader{{Pattern: p}}, true
	return err
}

// patterned reports whether there is --pattern.
func (d *decoder) patterned() bool { return d.insist && len(d.documents) > 0 }

// numberOf is the document whose number was read in a form. It is nil where the number is that of no document; with
// --pattern that is an error.
func (d *decoder) numberOf(r *formReader, id firn.ID) (*documentRead, error) {
	reader := r.pattern
	if d.insist {
		reader = nil
	}
	if d.patterned() {
		reader = d.documents[0]
	}
	if reader == nil {
		return nil, nil
	}
	n, err := reader.ParseID(id)
	if err == nil {
		return &documentRead{n, reader}, nil
	}
	if d.patterned() {
		return nil, err
	}
	return nil, nil
}

// inDocuments writes to d.line what the text says as a document, as it is printed or as the number that it
// is without zeros in front. The error is that of a series that the text was meant to be of.
func (d *decoder) inDocuments(text []byte) (read int, mistyped error) {
	for _, r := range d.documents {
		n, err := r.Parse(string(text))
		var id firn.ID
		if err != nil && r.IsNumeric() && readID(&id, text) == nil {
			if again, failed := r.ParseID(id); failed == nil {
				n, err = again, nil
			}
		}
		switch {
		case err == nil:
			read++
			d.appendDocument(text, &documentRead{n, r})
		case d.insist || mistyped == nil && r.Claims(string(text)):
			mistyped = err
		}
	}
	return read, mistyped
}

// appendDocument appends a document to d.line, read in d.form if there is one.
func (d *decoder) appendDocument(text []byte, n *documentRead) {
	d.document = n
	if d.json {
		line := textLine{Text: string(text), Kind: config.Document, Period: n.Period, Count: n.Count, ID: int64(n.ID), Series: n.series}
		if d.form != nil {
			line.Form = d.form.name
		}
		b, err := json.Marshal(line)
		if err != nil {
			panic(err) // texts and numbers can always be written
		}
		d.line = append(append(d.line, b...), '\n')
		return
	}
	if !d.alone {
		d.line = append(append(d.line, text...), "  "...)
	}
	d.line = fmt.Appendf(d.line, "%-*s", layoutColumn, config.Document)
	if n.Period != "" {
		d.line = append(append(append(d.line, "date="...), n.Period...), ' ')
	}
	d.line = strconv.AppendInt(append(d.line, "count="...), n.Count, 10)
	switch {
	case d.form != nil:
		d.line = d.form.appendText(append(d.line, "  "...), d.id)
	case n.series != "":
		d.line = append(append(d.line, "  series="...), n.series...)
	}
	d.line = append(d.line, '\n')
}

// print writes what one document says for a person, a field a line.
func (n *documentRead) print(w io.Writer, text string, form *formReader) error {
	b := fmt.Appendf(nil, "%s in pattern %s\n\n", text, n.Pattern)
	if n.Period != "" {
		b = fmt.Appendf(b, "    %-12s%s\n", "date", n.Period)
	}
	b = fmt.Appendf(b, "    %-12s%d\n", "count", n.Count)
	if form == nil && n.series != "" {
		b = fmt.Appendf(b, "\n    %-12s%s\n", "series", n.series)
	}
	_, err := w.Write(b)
	return err
}

// inPools writes to d.line what the id says in the layouts of the config that can well have it.
func (d *decoder) inPools(text []byte) {
	layouts := d.pools
	if d.known != nil {
		layouts = append(layouts[:0:0], d.known)
	}
	for _, l := range layouts {
		if l.Plausible(d.id, d.now) && l.Decode(d.id, &d.reading) == nil {
			d.append(text, true)
		}
	}
}
