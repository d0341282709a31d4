package phrase

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable is a text with its control characters written out, as \n or \x1b: what others have put into a
// store or a database moves no cursor and changes no title of a terminal.
func Printable(text string) string { return printable(text, unicode.IsControl) }

// PrintableLines is Printable, and leaves ends of lines and tabs as they are.
func PrintableLines(text string) string {
	return printable(text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) })
}

func printable(text string, hidden func(rune) bool) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
