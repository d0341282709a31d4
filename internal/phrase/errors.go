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

var packagePrefix = regexp.MustCompile(`^(firn|lease|page|pool|sequence|document|server|shard|plan|verify|(store|public)(/[a-z]+)?): `)

// OneLine is the text of an error that joins several, in one line, without the names of packages.
func OneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = WithoutPackage(line)
	}
	return strings.Join(lines, "; ")
}

// Reason is the text of an error for those who do not write Go. It leaves out the name of the
// package that begins it, and what a Go program does next: an error whose Error says that has a
// method Reason, which does not.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return WithoutPackage(withoutAdvice(err.Error(), err))
}

// withoutAdvice takes the advice of all errors of a tree out of a text.
func withoutAdvice(text string, err error) string {
	if e, ok := err.(interface{ Reason() string }); ok {
		text = strings.Replace(text, err.Error(), e.Reason(), 1)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			return withoutAdvice(text, next)
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			text = withoutAdvice(text, one)
		}
	}
	return text
}
