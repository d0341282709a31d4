package resp

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/firn-id/firn/server"
)

// A reply is what is to be written, in either version of the protocol.
type reply struct {
	out      []byte
	protocol int
}

func (r *reply) line(kind byte, text string) {
	r.out = append(append(append(r.out, kind), text...), '\r', '\n')
}

func (r *reply) simple(text string) { r.line('+', text) }

func (r *reply) ok() { r.simple("OK") }

func (r *reply) header(kind byte, n int) {
	r.out = append(strconv.AppendInt(append(r.out, kind), int64(n), 10), '\r', '\n')
}

func (r *reply) integer(n int) { r.header(':', n) }

func (r *reply) array(n int) { r.header('*', n) }

// dictionary begins n pairs of key and value.
func (r *reply) dictionary(n int) {
	if r.protocol >= 3 {
		r.header('%', n)
		return
	}
	r.array(2 * n)
}

func (r *reply) set(n int) {
	if r.protocol >= 3 {
		r.header('~', n)
		return
	}
	r.array(n)
}

func (r *reply) null() {
	if r.protocol >= 3 {
		r.out = append(r.out, "_\r\n"...)
		return
	}
	r.out = append(r.out, "$-1\r\n"...)
}

func (r *reply) bulk(text string) {
	r.header('$', len(text))
	r.out = append(append(r.out, text...), '\r', '\n')
}

// verbatim is a long text for people.
func (r *reply) verbatim(text string) {
	if r.protocol >= 3 {
		r.header('=', len(text)+len("txt:"))
		r.out = append(append(append(r.out, "txt:"...), text...), '\r', '\n')
		return
	}
	r.bulk(text)
}

// value is a value as a bulk string.
func (r *reply) value(v server.Value) {
	if v.Text != "" {
		r.bulk(v.Text)
		return
	}
	// The length is not known before, and nearly always has two digits.
	at := len(r.out)
	r.out = v.Append(append(r.out, "$18\r\n"...))
	if n := len(r.out) - at - len("$18\r\n"); n != 18 {
		r.out = r.out[:at]
		r.header('$', n)
		r.out = v.Append(r.out)
	}
	r.out = append(r.out, '\r', '\n')
}

// maxSafe is the highest integer that JavaScript has exactly.
const maxSafe = 1<<53 - 1

// number is a value as an integer; or as a string where safe asks for that and the
// integer is one that JavaScript would round.
func (r *reply) number(v server.Value, safe bool) {
	n, _ := v.Number()
	if safe && n > maxSafe {
		r.value(v)
		return
	}
	r.out = strconv.AppendInt(append(r.out, ':'), int64(n), 10)
	r.out = append(r.out, '\r', '\n')
}

// maxError is how long an error may be, in bytes.
const maxError = 2048

// fail is an error; the text begins with its code. What would end the line is made
// a space.
func (r *reply) fail(text string) {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
	if len(text) > maxError {
		text = text[:maxError]
	}
	r.line('-', text)
}
