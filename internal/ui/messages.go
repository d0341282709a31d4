package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
)

// Messages is standard error: what a command says besides its data. Each message is a line of
// text, or an object on a line, so that a program that asks for JSON can read all of it.
type Messages struct {
	io.Writer
	AsJSON bool
}

// A message is one message as JSON. It has one of Error, Warning and Note.
type message struct {
	Error   string `json:"error,omitempty"`
	Warning string `json:"warning,omitempty"`
	Note    string `json:"note,omitempty"`

	Place string   `json:"place,omitempty"` // the faulty text, and below it a mark
	Hints []string `json:"hints,omitempty"`
}

// An ending is the error that ends a command, as JSON. The facts of the error stand behind it.
type ending struct {
	message
	Exit int `json:"exit"`
}

// asJSON reports whether messages are written to w as JSON.
func asJSON(w io.Writer) bool {
	m, ok := w.(*Messages)
	return ok && m.AsJSON
}

// encode prints an object on a line. No password or key is in it.
func encode(w io.Writer, parts ...any) {
	line := []byte{'{'}
	for _, part := range parts {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(part); err != nil {
			panic(err) // a type that has no JSON
		}
		if inner := strings.TrimSuffix(b.String(), "}\n")[1:]; inner != "" {
			if len(line) > 1 {
				line = append(line, ',')
			}
			line = append(line, inner...)
		}
	}
	fmt.Fprintf(w, "%s}\n", line)
}

// PrintFailure prints the error that ends a command, with its hints as a person reads them. As
// JSON it has the facts too, an object: what the error says about a pool, a server, a shard.
func PrintFailure(w io.Writer, f *Failure, hints []string, facts any) {
	if asJSON(w) {
		encode(w, ending{message{Error: errorText(f.Err), Place: withoutKeys(strings.Join(f.Place, "\n")), Hints: allWithoutKeys(hints)}, f.Code}, facts)
		return
	}
	PrintError(w, f.Err)
	for _, line := range f.Place {
		fmt.Fprintf(w, "firn:     %s\n", withoutKeys(line))
	}
	for _, line := range f.Table {
		fmt.Fprintf(w, "  %s\n", withoutKeys(line))
	}
	printHints(w, hints)
}

// PrintError prints an error that does not end the command, each line of it as a line of its own.
func PrintError(w io.Writer, err error) {
	if asJSON(w) {
		encode(w, message{Error: errorText(err)})
		return
	}
	for line := range strings.Lines(errorText(err)) {
		fmt.Fprintf(w, "firn: error: %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// errorText is the text of an error without package names at the beginning of its lines.
func errorText(err error) string {
	var b strings.Builder
	for line := range strings.Lines(err.Error()) {
		b.WriteString(phrase.WithoutPackage(line))
	}
	return withoutKeys(b.String())
}

// PrintWarning prints a warning of one line.
func PrintWarning(w io.Writer, format string, args ...any) {
	WarnHinting(w, nil, format, args...)
}

// WarnHinting prints a warning with hints.
func WarnHinting(w io.Writer, hints []string, format string, args ...any) {
	text := withoutKeys(fmt.Sprintf(format, args...))
	if asJSON(w) {
		encode(w, message{Warning: text, Hints: allWithoutKeys(hints)})
		return
	}
	fmt.Fprintf(w, "firn: warning: %s\n", text)
	printHints(w, hints)
}

// PrintNote prints what a person wants to know and no program needs. It may have several lines.
func PrintNote(w io.Writer, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if asJSON(w) {
		encode(w, message{Note: text})
		return nil
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func printHints(w io.Writer, hints []string) {
	for _, line := range hints {
		fmt.Fprintf(w, "firn: hint: %s\n", withoutKeys(line))
	}
}

// withoutKeys is a text that a person may see, and that does nothing to a terminal.
func withoutKeys(text string) string { return phrase.PrintableLines(phrase.WithoutKeys(text)) }

func allWithoutKeys(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, withoutKeys(text))
	}
	return all
}
