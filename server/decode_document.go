package server

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
)

// documentLine is the JSON of a document that was read, as "firn decode --json" writes it.
type documentLine struct {
	Text   string `json:"text"`
	Kind   string `json:"kind"`
	Period string `json:"period,omitempty"`
	Count  int64  `json:"count,string"`
	ID     int64  `json:"id,string,omitempty"`
	Form   string `json:"form,omitempty"`
	Series string `json:"series"`
}

// documentJSON is the JSON of a document.
func (d Decoded) documentJSON() ([]byte, error) {
	return json.Marshal(documentLine{
		Text: d.Text, Kind: "document", Period: d.Document.Period, Count: d.Document.Count, ID: int64(d.ID), Form: d.Form, Series: d.Series,
	})
}

// IsDocument reports whether a document was read.
func (d Decoded) IsDocument() bool { return d.Document.Count > 0 }

// asDocument reads the text itself as that of a document: as it is printed, or as the number that it is
// without zeros in front.
func (d *decoding) asDocument(one *decodable) {
	n, err := one.pattern.Parse(d.text)
	if err != nil && d.plain == nil && one.pattern.IsNumeric() {
		if again, failed := one.pattern.ParseID(d.id); failed == nil {
			n, err = again, nil
		}
	}
	switch {
	case err == nil:
		d.addDocument(one, n)
	case d.mistyped == nil && one.pattern.Claims(d.text):
		d.mistyped = err
	}
}

// asDocumentIn reads the number of a public form as that of a document, and reports whether it is one.
func (d *decoding) asDocumentIn(one *decodable, id firn.ID) bool {
	n, err := one.pattern.ParseID(id)
	if err == nil {
		d.addDocument(one, n)
	}
	return err == nil
}

func (d *decoding) addDocument(one *decodable, n document.Number) {
	d.documents = append(d.documents, Decoded{ID: n.ID, Known: true, Form: one.formOf(d.text, n), Series: one.names[0], Text: d.text, Document: n})
}

// formOf is the name of the form that a text of the document is in; "" where it is the document itself.
func (one *decodable) formOf(text string, n document.Number) string {
	if one.form == nil || text == n.Text || text == n.ID.String() {
		return ""
	}
	return one.formName
}

// farCount is more than a document counts to that has no date: a number above it is rather an id.
const farCount = 1_000_000_000_000

// settle puts documents before all else, but those that would have counted very far after other ids. Of
// other ids, which any number can be read as, those stay that can well be one.
func (d *decoding) settle(now time.Time) {
	if len(d.documents) == 0 && d.mistyped == nil {
		return
	}
	d.found = append(d.documents, slices.DeleteFunc(d.found, func(o Decoded) bool {
		return o.decoder == nil || !o.decoder.Plausible(o.ID, now)
	})...)
	far := func(o Decoded) int {
		if o.IsDocument() && o.Document.Period == "" && o.Document.Count > farCount {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(d.found, func(a, b Decoded) int { return far(a) - far(b) })
}
