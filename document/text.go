package document

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// A Number is one text of a series, and what it was made of.
type Number struct {
	Text   string
	Period string  // the digits of the date and the hour in it; "" where the pattern has none
	Count  int64   // in its period, or in the series where there are none
	ID     firn.ID // the text as a number, where the pattern is digits only; else 0
}

// AppendText appends the text of a count in a period. Both must be such as the
// pattern has them.
func (p *Pattern) AppendText(dst []byte, period string, count int64) []byte {
	start := len(dst)
	for i := range p.parts {
		q := &p.parts[i]
		switch {
		case q.width > 0:
			dst = appendPadded(dst, count, q.width)
		case q.date != nil:
			dst = q.date.append(dst, period)
		case q.check != nil:
			dst = appendPadded(dst, int64(q.check.of(dst[start:])), q.check.width)
		default:
			dst = append(dst, q.literal...)
		}
	}
	return dst
}

// appendPadded appends n with zeros in front, so that it has width digits.
func appendPadded(dst []byte, n int64, width int) []byte {
	var b [20]byte
	digits := strconv.AppendInt(b[:0], n, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// number makes the text of a count in a period.
func (p *Pattern) number(period string, count int64) Number {
	s := Number{Text: string(p.AppendText(nil, period, count)), Period: period, Count: count}
	if p.ints {
		s.ID = asID(s.Text)
	}
	return s
}

// asID is a text of digits as a number, which fits: the pattern was refused otherwise.
func asID(text string) firn.ID {
	n, _ := strconv.ParseInt(text, 10, 64)
	return firn.ID(n)
}

// Parse reads a text of the pattern: its length, its date, its count and its
// check digits must be right. The error is a [*firn.SyntaxError].
func (p *Pattern) Parse(text string) (Number, error) {
	n, _, err := p.parse(text)
	return n, err
}

// Claims reports whether a text was meant to be one of the pattern, be it right or not: it is
// right but for its check digits, or it begins with the letters that all texts of the pattern begin with.
func (p *Pattern) Claims(text string) bool {
	_, wrong, err := p.parse(text)
	first := &p.parts[0]
	return err == nil || wrong != nil && wrong.check != nil ||
		strings.Trim(first.literal, "0123456789") != "" && strings.HasPrefix(text, first.literal)
}

// parse is Parse, and returns the part that is wrong; nil: none, or the length is.
func (p *Pattern) parse(text string) (s Number, wrong *part, err error) {
	bad := func(at int, q *part, format string, args ...any) (Number, *part, error) {
		return Number{}, q, &firn.SyntaxError{Kind: "document", Text: text, Offset: min(at, len(text)), Reason: fmt.Sprintf(format, args...)}
	}
	extra := len(text) - p.shortest()
	if extra < 0 {
		return bad(len(text), nil, "it is too short for %s", p)
	}
	s.Text = text
	at, wrongAt := 0, 0
	for i := range p.parts {
		q := &p.parts[i]
		n := q.length()
		if q.grows {
			n += extra
		}
		piece := text[at : at+n]
		switch {
		case q.width > 0:
			count, reason := p.count(q, piece)
			if reason != "" {
				return bad(at, q, "%s", reason)
			}
			s.Count = count
		case q.date != nil:
			digits, ok := q.date.digits(piece)
			if !ok {
				return bad(at, q, "%q is no date {%s}", piece, q.date.text)
			}
			s.Period += digits
		case q.check != nil:
			if want := appendPadded(nil, int64(q.check.of([]byte(text[:at]))), q.check.width); !bytes.Equal(want, []byte(piece)) {
				wrong, wrongAt = q, at // unless something else is
			}
		case piece != q.literal:
			return bad(at, q, "there should be %q", q.literal)
		}
		at += n
	}
	switch {
	case at < len(text): // a check of another place says nothing
		return bad(at, nil, "it is too long for %s", p)
	case wrong != nil:
		return bad(wrongAt, wrong, "the check {%s} is wrong: something was mistyped", wrong.check.name)
	}
	if p.ints {
		s.ID = asID(text)
	}
	return s, nil, nil
}

// count reads the digits of a counter.
func (p *Pattern) count(q *part, digits string) (n int64, reason string) {
	switch {
	case strings.Trim(digits, "0123456789") != "":
		return 0, fmt.Sprintf("the counter has digits only, not %q", digits)
	case len(digits) > q.width && digits[0] == '0':
		return 0, fmt.Sprintf("a counter of more than %d digits begins with none that is 0", q.width)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > p.max {
		return 0, fmt.Sprintf("a count is at most %d", p.max)
	}
	if n == 0 {
		return 0, "a count is at least 1"
	}
	return n, ""
}
