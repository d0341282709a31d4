package phrase

import (
	"regexp"
	"strings"
)

// WithoutKeys hides the keys of public forms, wherever somebody put one by mistake.
func WithoutKeys(text string) string { return keyText.ReplaceAllString(text, "${1}xxxxx") }

var keyText = regexp.MustCompile(`(firn-key-\d+:)[^\s"',]+`)

// WithoutPackage cuts the name of the package that begins an error of a library:
// it tells a programmer where to look, and the user of a command nothing.
func WithoutPackage(text string) string {
	if rest, ok := strings.CutPrefix(text, `pool: "`); ok { // it is also what the error is about
		return `pool "` + rest
	}
	return text[len(packagePrefix.FindString(text)):]
}

var packagePrefix = regexp.MustCompile(`^(firn|lease|pool|sequence|document|server|shard|plan|verify|(store|public)(/[a-z]+)?): `)
