package trouble

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Explain puts an error of PostgreSQL's driver on one line, after what to do about it.
func Explain(err error) error {
	text := Cause(err)
	if advice := PostgreSQL(err); advice != "" {
		text = fmt.Sprintf("%s (%s)", advice, text)
	}
	return &explained{text, err}
}

// Cause is the text of an error of PostgreSQL's driver on one line. Where the server says why, that is
// all that counts, and not how TLS was tried before.
func Cause(err error) string {
	var said interface {
		error
		SQLState() string
	}
	if errors.As(err, &said) {
		return said.Error()
	}
	return strings.ReplaceAll(oneLine(err), ": %!w(<nil>)", "") // pgx adds that where it has no cause
}

// oneLine is the text of an error that the driver wrote over several lines, on one.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	if len(lines) < 2 {
		return err.Error()
	}
	// With and without TLS an address is away for the same reason.
	why := slices.CompactFunc(lines[1:], func(a, b string) bool { return strings.Contains(a, b) })
	return lines[0] + " " + strings.Join(why, "; ")
}

type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }
