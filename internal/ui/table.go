package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/firn-id/firn/internal/phrase"
)

// Emit prints rows: in columns below a header, or as JSON, an object a line. Cells are the
// columns of one row, as fmt prints them, with control characters written out.
func Emit[T any](out io.Writer, asJSON bool, header []string, rows []T, cells func(T) []any) error {
	if asJSON {
		return EmitJSON(out, rows...)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range rows {
		var texts []string
		for _, cell := range cells(row) {
			texts = append(texts, phrase.Printable(fmt.Sprint(cell)))
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	}
	return w.Flush()
}

// EmitJSON prints rows as JSON, an object a line.
func EmitJSON[T any](out io.Writer, rows ...T) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
