package main

import (
	"errors"
	"strings"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
)

// This file says what to do about names of a template of documents.

// anyName is a name of a template, to show people.
func anyName(template string) string { return strings.TrimSuffix(template, "*") + "42" }

// drawWord is what firn next is given to draw from a counter: of a template one of its names.
func drawWord(name string) string {
	if template.Is(name) {
		name = anyName(name)
	}
	return phrase.ShellWord(name)
}

// hintTemplate says what to do where a template has no room for a name, or not the name yet. It reports
// whether that is what err says.
func (d *drawing) hintTemplate(f *ui.Failure, err error) bool {
	var full *document.FullError
	var none *document.MissingError
	switch {
	case errors.As(err, &full) && d.Options.Document.Names > full.Names:
		f.Hint("firn.yaml says names: %d, and the store still has %d; to change the store: firn series set %s --names %[1]d", d.Options.Document.Names, full.Names, phrase.ShellWord(full.Template))
	case errors.As(err, &full):
		f.Hint("to allow more names: firn series set %s --names %d", phrase.ShellWord(full.Template), min(2*full.Names, 100_000))
	case errors.As(err, &none) && none.Template != "":
		f.Hint("a name begins with its first text: firn next %s", phrase.ShellWord(none.Series)).
			Hint("to see the template: firn series show %s", phrase.ShellWord(none.Template))
	default:
		return false
	}
	return true
}
