package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/dated"
)

// A Pattern says how the texts of a series are made. The zero Pattern is none;
// see [ParsePattern].
type Pattern struct {
	text  string
	parts []part
	date  *dated.Form // of the date and the hour together; nil: none
	max   int64       // count at most
	ints  bool        // every text is digits only
}

// A part is a piece of a pattern. It is a literal where nothing else is set.
type part struct {
	literal string
	date    *datePart
	width   int  // of a counter, in digits; 0: it is none
	grows   bool // it has width digits at least, and not exactly
	check   *checkForm
}

// Limits of patterns.
const (
	maxPattern = 128 // bytes
	maxDigits  = 18  // of a counter, and of texts that are numbers: 10^18 is below 2^63
)

// ParsePattern reads a pattern: text, with these in braces in any order, each
// once at most.
//
//	{6}        the counter, with 6 digits, 1 to 18; what has no room in them is an [*EndError]
//	{6+}       the counter, with 6 digits or as many more as it takes; {1+} is without zeros in front
//	{yyyyMMdd} {yyMMdd} {yyyyMM} {yyMM} {yyyy} {yyDDD}
//	           the date; DDD is the day of the year, 001 to 366. Between two units may stand one of
//	           - / . _ and a space: {yyyy-MM-dd}
//	{HH}       behind a date with a day: the hour, 00 to 23; {yyyyMMddHH} has both
//	{luhn}     a check digit by Luhn, of all digits before it
//	{mod97}    two check digits by ISO 7064 MOD 97-10, of all digits and letters (A is 10) before them
//
// The counter has to be there, and a check after it and the date. The text
// between has no braces and nothing that does not print. The error is a
// [*firn.SyntaxError].
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	bad := func(at int, format string, args ...any) (*Pattern, error) {
		return nil, &firn.SyntaxError{Kind: "pattern", Text: text, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	if len(text) > maxPattern {
		return bad(maxPattern, "a pattern has at most %d bytes, not %d", maxPattern, len(text))
	}
	for at := 0; at < len(text); {
		rest := text[at:]
		if end := strings.IndexAny(rest, "{}"); end != 0 {
			if end < 0 {
				end = len(rest)
			}
			if i := unprintable(rest[:end]); i >= 0 {
				return bad(at+i, "this does not print")
			}
			p.parts = append(p.parts, part{literal: rest[:end]})
			at += end
			continue
		}
		end := strings.IndexAny(rest[1:], "{}") + 1
		if rest[0] == '}' || end == 0 || rest[end] != '}' {
			return bad(at, "a brace that has no other; the text itself has none")
		}
		one, reason := parsePart(rest[1:end])
		if reason == "" {
			reason = p.place(one)
		}
		if reason != "" {
			return bad(at, "%s", reason)
		}
		p.parts = append(p.parts, one)
		at += end + 1
	}
	if reason := p.limit(); reason != "" {
		return bad(0, "%s", reason)
	}
	return p, nil
}

// unprintable returns where the first character is that does not print, or -1.
func unprintable(s string) int {
	for i, c := range s {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return i
		}
	}
	return -1
}

// parsePart reads what stands between braces.
func parsePart(s string) (p part, reason string) {
	if d := parseDate(s); d != nil && s != "" {
		return part{date: d}, ""
	}
	for i := range checkForms {
		if checkForms[i].name == s {
			return part{check: &checkForms[i]}, ""
		}
	}
	digits, grows := strings.CutSuffix(s, "+")
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || strconv.FormatUint(n, 10) != digits {
		if digits != "" && strings.Trim(digits, "0123456789") == "" {
			return p, fmt.Sprintf("a counter has 1 to %d digits, not %s", maxDigits, digits)
		}
		return p, fmt.Sprintf("{%s} is nothing: a counter is {6} or {1+}, a date such as {yyyyMMdd}, {yyMMdd}, {yyyy-MM-dd}, {yyyyMM}, {yyyy} or {yyDDD}, an hour {HH}, a check {luhn} or {mod97}", s)
	}
	if n < 1 || n > maxDigits {
		return p, fmt.Sprintf("a counter has 1 to %d digits, not %d", maxDigits, n)
	}
	return part{width: int(n), grows: grows}, ""
}

// place says what keeps one from standing behind the parts that are there.
func (p *Pattern) place(one part) string {
	counted, checked := false, false
	for _, q := range p.parts {
		counted = counted || q.width > 0
		checked = checked || q.check != nil
	}
	switch {
	case one.width > 0 && counted:
		return "there is a counter already"
	case one.check != nil && checked:
		return "there is a check already"
	case one.check != nil && !counted:
		return "a check comes after the counter"
	case one.date != nil && checked:
		return "a check comes after the date"
	}
	if one.date != nil {
		return p.placeDate(one.date)
	}
	return ""
}

// limit finds the greatest count, and says what is wrong with the pattern as a
// whole.
//
// All but one part have a fixed width, so the length of a text tells the width
// of its counter, and two texts are equal only if date and count are.
func (p *Pattern) limit() string {
	p.ints = true
	others, counter := 0, part{}
	for _, q := range p.parts {
		if q.width > 0 {
			counter = q
			continue
		}
		others += q.length()
		p.ints = p.ints && strings.Trim(q.literal, "0123456789") == "" && (q.date == nil || q.date.text == q.date.units)
	}
	if counter.width == 0 {
		return "a pattern has a counter, such as {6} or {1+}"
	}
	digits := counter.width
	if counter.grows {
		digits = maxDigits
	}
	if p.ints && counter.grows {
		if p.zeroFirst() {
			return "texts of digits only are numbers too: with zeros in front the counter has a fixed width, such as {6}"
		}
		digits = min(digits, maxDigits-others)
	}
	if digits >= counter.width {
		p.max = pow10(digits) - 1
	}
	if p.ints && (p.max == 0 || !p.fits()) {
		return fmt.Sprintf("texts of digits only are numbers too, and this could pass %d: it has %d digits, and %d would do",
			int64(math.MaxInt64), others+counter.width, maxDigits)
	}
	return ""
}

// zeroFirst reports whether a text can begin with a zero that is not the counter's.
// As numbers, two such texts with counters of two widths can be equal: 0500112 of
// 2005 would be 500112 of 2050.
func (p *Pattern) zeroFirst() bool {
	first := p.parts[0]
	return first.width == 0 && (first.date != nil && !strings.HasPrefix(first.date.units, "yyyy") || strings.HasPrefix(first.literal, "0"))
}

// fits reports whether the greatest text is at most the greatest int64.
func (p *Pattern) fits() bool {
	var b strings.Builder
	for _, q := range p.parts {
		switch {
		case q.width > 0:
			b.WriteString(strconv.FormatInt(p.max, 10))
		case q.date != nil || q.check != nil:
			b.WriteString(strings.Repeat("9", q.length()))
		default:
			b.WriteString(q.literal)
		}
	}
	_, err := strconv.ParseInt(b.String(), 10, 64)
	return err == nil
}

func pow10(n int) int64 {
	v := int64(1)
	for range n {
		v *= 10
	}
	return v
}

// length of a part, in bytes; of a counter the least.
func (q *part) length() int {
	switch {
	case q.width > 0:
		return q.width
	case q.date != nil:
		return len(q.date.text)
	case q.check != nil:
		return q.check.width
	}
	return len(q.literal)
}

// String returns the pattern as it was parsed.
func (p *Pattern) String() string { return p.text }

// Max is the greatest count that there is room for.
func (p *Pattern) Max() int64 { return p.max }

// HasDate reports whether texts have a date, so that a time zone is needed.
func (p *Pattern) HasDate() bool { return p.date != nil }

// IsNumeric reports whether texts are digits only, so that each is an int64 too.
func (p *Pattern) IsNumeric() bool { return p.ints }

// differs says what the texts of two patterns differ in besides the width of
// the counter, or "".
//
// Where nothing else differs no text can be one of the other's for another date
// or count: equal texts are equally long, so have counters equally wide, at the
// same place. So the width may change.
func (p *Pattern) differs(q *Pattern) string {
	a, b := p.stripped(), q.stripped()
	if a == b && (p.text == q.text || !p.ints || !p.zeroFirst()) {
		return ""
	}
	if a == b {
		return "width, and texts with a zero in front are numbers too"
	}
	return fmt.Sprintf("%s and %s", a, b)
}

// Wider returns the pattern with a counter of two more digits, which "firn series set"
// accepts; "" where there is none.
func (p *Pattern) Wider() string {
	for _, q := range p.parts {
		if q.width == 0 {
			continue
		}
		have, want := fmt.Sprintf("{%d", q.width), fmt.Sprintf("{%d", q.width+2)
		wider, err := ParsePattern(strings.Replace(p.text, have, want, 1))
		if err == nil && p.differs(wider) == "" && wider.max > p.max {
			return wider.text
		}
	}
	return ""
}

// stripped is the pattern with {n} for any counter.
func (p *Pattern) stripped() string {
	var b strings.Builder
	for _, q := range p.parts {
		switch {
		case q.width > 0:
			b.WriteString("{n}")
		case q.date != nil:
			b.WriteString("{" + q.date.text + "}")
		case q.check != nil:
			b.WriteString("{" + q.check.name + "}")
		default:
			b.WriteString(q.literal)
		}
	}
	return b.String()
}
