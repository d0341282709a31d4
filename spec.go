package firn

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits of a layout.
const (
	maxFields = 8
	maxName   = 16 // bytes
	maxWidth  = 63 // bits
	minUnit   = int64(time.Microsecond)
	maxUnit   = int64(time.Hour)
	maxYears  = 1_000_000    // of life, well inside what time.Time can say
	yearNanos = 31_556_952e9 // mean Gregorian
)

// A spec is the text of a layout while it is read.
type spec string

// fail returns the error about what begins at a byte of the spec.
func (s spec) fail(offset int, format string, args ...any) error {
	return &SyntaxError{Kind: "layout", Text: string(s), Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// ParseLayout reads a layout, in one of three forms:
//
//	twitter
//	twitter;epoch=2020-01-01T00:00:00Z
//	time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z
//
// The first is the name of a preset, see [Presets]; the second is a preset with
// another epoch. The third lists the fields, high bits first, as name:width,
// and must say the epoch.
//
// A layout has 1 to 8 fields. One of them is time, whose tick follows @ as a
// whole number of us, ms, s, m or h, from 1us to 1h (1ms if it is left out).
// There may be a shard, a seq, which counts inside a tick, and any other names,
// which together are the worker. A name is of a-z, 0-9 and _, begins with a
// letter, has at most 16 bytes, and is not id, layout or unix_ms (nor sequence
// or timestamp, which are seq and time). A width is 1 to 63 bits. All widths
// together are at most 63, or 64 if the time leads; then the layout ends where
// its highest bit, the sign, would be set.
//
// The epoch is in RFC 3339, in any zone, from 1970 to 2262, to the nanosecond; or
// in milliseconds since 1970, of 12 or 13 digits, as generators have it in their
// source. [Layout.String] writes the first.
// A layout lasts at most a million years.
//
// Errors are [*SyntaxError].
func ParseLayout(s string) (Layout, error) {
	head, _, _ := strings.Cut(s, ";")
	if strings.ContainsAny(head, ":,") {
		return parseFields(spec(s))
	}
	l, ok := preset(head)
	if !ok {
		return Layout{}, spec(s).fail(0, "%s", unknownPreset(head))
	}
	epoch, ok, err := spec(s).options(len(head))
	if err != nil {
		return Layout{}, err
	}
	if ok {
		l.epoch = epoch
	}
	return l, nil
}

// MustLayout is [ParseLayout] for what is written in a program: it panics on an
// error.
func MustLayout(s string) Layout {
	l, err := ParseLayout(s)
	if err != nil {
		panic(err)
	}
	return l
}

// parseFields reads the form that lists fields. It does not know presets, so
// that presets can be made with it.
func parseFields(s spec) (Layout, error) {
	l := Layout{unit: int64(time.Millisecond)}
	var offsets [maxFields]int
	head, _, _ := strings.Cut(string(s), ";")
	offset := 0
	for text := range strings.SplitSeq(head, ",") {
		if l.count == maxFields {
			return Layout{}, s.fail(offset, "a layout has at most %d fields", maxFields)
		}
		f, err := s.field(&l, offset, text)
		if err != nil {
			return Layout{}, err
		}
		l.fields[l.count], offsets[l.count] = f, offset
		l.count++
		offset += len(text) + 1
	}
	if err := s.place(&l, &offsets); err != nil {
		return Layout{}, err
	}
	epoch, ok, err := s.options(len(head))
	if err != nil {
		return Layout{}, err
	}
	if !ok {
		return Layout{}, s.fail(len(s), "the epoch is missing, such as ;epoch=2025-01-01T00:00:00Z")
	}
	l.epoch = epoch
	return l, nil
}

// field reads name:width or time:width@tick, which begins at offset. A tick
// goes to l.
func (s spec) field(l *Layout, offset int, text string) (Field, error) {
	name, width, found := strings.Cut(text, ":")
	if at, reason := badName(name); reason != "" {
		return Field{}, s.fail(offset+at, "%s", reason)
	}
	if _, twice := l.Field(name); twice {
		return Field{}, s.fail(offset, "field %s is there twice", name)
	}
	if !found {
		return Field{}, s.fail(offset+len(name), "field %s has no width, such as %s:10", name, name)
	}
	offset += len(name) + 1
	width, tick, found := strings.Cut(width, "@")
	n, ok := parseWhole(width, maxWidth)
	if !ok {
		return Field{}, s.fail(offset, "the width of %s is 1 to %d bits, not %s", name, maxWidth, quoted(width))
	}
	if found {
		offset += len(width) + 1
		if name != "time" {
			return Field{}, s.fail(offset-1, "%s has no tick; time has one", name)
		}
		unit, reason := parseUnit(tick)
		if reason != "" {
			return Field{}, s.fail(offset, "%s", reason)
		}
		l.unit = unit
	}
	return Field{Name: name, Width: int(n)}, nil
}

// place works out the shifts and refuses what only shows in the whole.
func (s spec) place(l *Layout, offsets *[maxFields]int) error {
	most := 63
	if l.Ordered() {
		most = 64
	}
	total, over, clock := 0, -1, -1
	for i, f := range l.fields[:l.count] {
		total += f.Width
		if total > most && over < 0 {
			over = offsets[i]
		}
		if f.Name == "time" {
			clock = offsets[i]
		}
	}
	switch {
	case clock < 0:
		return s.fail(0, "there is no time field, such as time:41@1ms")
	case over >= 0 && most == 63:
		return s.fail(over, "%d bits are %d too many: there are 63, or 64 where time comes first", total, total-most)
	case over >= 0:
		return s.fail(over, "%d bits are %d too many: there are 64", total, total-most)
	case total == 64 && l.fields[0].Width == 1:
		return s.fail(clock, "the time would be the sign bit alone")
	}
	shift := total
	for i := range l.fields[:l.count] {
		shift -= l.fields[i].Width
		l.fields[i].Shift = shift
	}
	// In floating point: it need not be exact, and cannot overflow.
	if years := math.Ldexp(float64(l.unit), l.lifeBits()) / yearNanos; years > maxYears {
		return s.fail(clock, "the time lasts %.0f years; the most is %d", years, maxYears)
	}
	return nil
}

// options reads what follows the head of the spec: nothing, or ;epoch=.
func (s spec) options(offset int) (epoch int64, ok bool, err error) {
	for offset < len(s) {
		offset++ // the semicolon
		text, _, _ := strings.Cut(string(s[offset:]), ";")
		name, value, found := strings.Cut(text, "=")
		switch {
		case name != "epoch" || !found:
			return 0, false, s.fail(offset, "unknown option %s; there is epoch=2025-01-01T00:00:00Z", quoted(text))
		case ok:
			return 0, false, s.fail(offset, "the epoch is there twice")
		}
		var reason string
		epoch, reason = parseEpoch(value)
		if reason != "" {
			return 0, false, s.fail(offset+len("epoch="), "%s", reason)
		}
		ok = true
		offset += len(text)
	}
	return epoch, ok, nil
}

// badName says where a field's name is wrong, and what is.
func badName(name string) (at int, reason string) {
	switch name {
	case "":
		return 0, "a field is missing"
	case "id", "layout", "unix_ms":
		return 0, name + " is not a name for a field: decoded ids have it in JSON"
	case "sequence":
		return 0, "the sequence is called seq" // or it would be a worker
	case "timestamp":
		return 0, "the timestamp is called time"
	}
	for i, c := range name {
		if 'a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '_') {
			continue
		}
		return i, "a name is of a-z, 0-9 and _ and begins with a letter"
	}
	if len(name) > maxName {
		return maxName, fmt.Sprintf("a name has at most %d bytes, not %d", maxName, len(name))
	}
	return 0, ""
}

// parseWhole reads 1 to most, without sign or leading zero.
func parseWhole(text string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && text[0] != '0' && n <= most
}

// units are those that a tick is written in, the longest first.
var units = [...]struct {
	name  string
	nanos int64
}{
	{"h", int64(time.Hour)},
	{"m", int64(time.Minute)},
	{"s", int64(time.Second)},
	{"ms", int64(time.Millisecond)},
	{"us", int64(time.Microsecond)},
}

// parseUnit reads how long a tick lasts.
func parseUnit(text string) (nanos int64, reason string) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	for _, u := range units {
		if text[len(digits):] != u.name {
			continue
		}
		if n, ok := parseWhole(digits, math.MaxUint64); ok {
			if n > uint64(maxUnit/u.nanos) {
				return 0, fmt.Sprintf("a tick lasts 1us to 1h, not %s", text)
			}
			return int64(n) * u.nanos, ""
		}
	}
	return 0, fmt.Sprintf("a tick is a whole number of us, ms, s, m or h, such as 10ms, not %s", quoted(text))
}

func formatUnit(nanos int64) string {
	for _, u := range units {
		if nanos > 0 && nanos%u.nanos == 0 {
			return strconv.FormatInt(nanos/u.nanos, 10) + u.name
		}
	}
	return strconv.FormatInt(nanos, 10) + "ns"
}

// parseEpoch reads an instant, in RFC 3339 or in milliseconds since 1970, as
// nanoseconds since 1970.
func parseEpoch(text string) (nanos int64, reason string) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return parseMillis(text)
	}
	t, err := time.Parse(time.RFC3339, text)
	digits, ok := instantForm(text)
	switch {
	case err != nil || !ok:
		return 0, "an epoch is such as 2025-01-01T00:00:00Z, not " + quoted(text)
	case digits > 9:
		return 0, "an epoch is a whole number of nanoseconds"
	case t.Before(time.Unix(0, 0)):
		return 0, "an epoch is not before 1970"
	case t.After(time.Unix(0, math.MaxInt64)):
		return 0, "an epoch is not after " + instant(time.Unix(0, math.MaxInt64))
	}
	return t.UnixNano(), ""
}

// parseMillis reads milliseconds since 1970. Fewer digits are refused: they are
// seconds, as a rule, and would be taken for a day in January of 1970.
func parseMillis(text string) (nanos int64, reason string) {
	ms, ok := parseWhole(text, math.MaxInt64/1_000_000)
	if !ok || len(text) < 12 {
		return 0, "an epoch in milliseconds has 12 or 13 digits, such as 1735689600000, not " + quoted(text)
	}
	return int64(ms) * 1_000_000, ""
}

// instantForm reports whether text has the form of RFC 3339 and how many digits
// its fraction has. The package time is not so exact: it reads T0:00:00 and a
// comma too, and cuts a long fraction off.
func instantForm(text string) (digits int, ok bool) {
	rest, ok := cutForm(text, "0000-00-00T00:00:00")
	if !ok {
		return 0, false
	}
	if fraction, found := strings.CutPrefix(rest, "."); found {
		rest = strings.TrimLeft(fraction, "0123456789")
		digits = len(fraction) - len(rest)
		if digits == 0 {
			return 0, false
		}
	}
	if rest == "Z" {
		return digits, true
	}
	if rest == "" || rest[0] != '+' && rest[0] != '-' {
		return 0, false
	}
	zone := rest[1:]
	rest, ok = cutForm(zone, "00:00")
	return digits, ok && rest == "" && zone < "24" && zone[3:] < "60"
}

// cutForm cuts what has a form off the front of text: 0 stands for any digit.
func cutForm(text, form string) (rest string, ok bool) {
	if len(text) < len(form) {
		return "", false
	}
	for i := range len(form) {
		digit := form[i] == '0' && '0' <= text[i] && text[i] <= '9'
		if !digit && text[i] != form[i] {
			return "", false
		}
	}
	return text[len(form):], true
}

// shownPart is how many bytes of a part of a spec an error shows.
const shownPart = 40

func quoted(s string) string {
	if len(s) > shownPart {
		return strconv.Quote(s[:shownPart]) + "..."
	}
	return strconv.Quote(s)
}

// String returns the one canonical text of l: fields, tick and epoch, whether
// or not it is a preset. It parses to l.
func (l Layout) String() string {
	if !l.IsValid() {
		return "invalid layout"
	}
	var b strings.Builder
	for i, f := range l.fields[:l.count] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f.Name + ":" + strconv.Itoa(f.Width))
		if f.Name == "time" {
			b.WriteString("@" + formatUnit(l.unit))
		}
	}
	b.WriteString(";epoch=" + instant(l.Epoch()))
	return b.String()
}

// MarshalText returns what String does. The zero Layout is an error.
func (l Layout) MarshalText() ([]byte, error) {
	if !l.IsValid() {
		return nil, errZeroLayout
	}
	return []byte(l.String()), nil
}

// UnmarshalText is [ParseLayout].
func (l *Layout) UnmarshalText(b []byte) error {
	parsed, err := ParseLayout(string(b))
	if err == nil {
		*l = parsed
	}
	return err
}
