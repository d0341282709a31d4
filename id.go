package firn

import (
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// An ID is a number from 1 to 2^63-1 that was issued once. Zero is never issued, so the zero
// ID means that there is no id.
//
// An ID has one text, the decimal one without sign, space or leading zero. In JSON
// it is written as a string, because JavaScript rounds numbers above 2^53, and
// read from a string or a number. In SQL it is a bigint. A negative ID is never
// written and never read; only String shows it.
//
// The zero ID is a value like any other where it is a field that was not set: it prints,
// marshals and logs as 0, and UnmarshalText and UnmarshalJSON read 0 back as the zero ID.
// JSON null leaves the value as it was. Where an id is required, zero is an error:
// [ParseID] does not read it, Value does not write it to a database and Scan does not
// read it from one. So a program that forgot to get an id cannot store 0 as one. A
// program that reads a required id from JSON checks that it is not zero. Use
// [database/sql.Null] for a column that may be NULL.
type ID int64

// ParseID reads the text of an id. Zero is not one. Its errors are [*SyntaxError].
func ParseID(s string) (ID, error) { return parseID(s) }

// maxDigits is how many digits the highest id has. Numbers of as many digits
// fit in 64 bits without a sign.
const maxDigits = 19

func parseID[T string | []byte](s T) (ID, error) {
	if len(s) == 0 || len(s) > maxDigits || s[0] == '0' {
		return 0, badID(string(s))
	}
	var n uint64
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, badID(string(s))
		}
		n = n*10 + uint64(digit)
	}
	if n > math.MaxInt64 {
		return 0, badID(string(s))
	}
	return ID(n), nil
}

// badID says why s is not the text of an id.
func badID(s string) error {
	fail := func(offset int, reason string) error {
		return &SyntaxError{Kind: "id", Text: s, Offset: offset, Reason: reason}
	}
	for i, r := range s {
		switch {
		case '0' <= r && r <= '9':
		case i == 0 && (r == '-' || r == '+'):
			return fail(i, "an id has no sign")
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			return fail(i, "an id has no space")
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			return fail(i, strconv.Quote(s[i:i+size])+" is not a digit")
		}
	}
	switch {
	case s == "":
		return fail(0, "there is no digit")
	case s == "0":
		return fail(0, "zero is never issued")
	case s[0] == '0':
		return fail(0, "an id has no leading zero")
	}
	return fail(0, "above "+strconv.FormatInt(math.MaxInt64, 10))
}

// String returns the decimal text, of a number that is not positive too.
//
// It is small enough to be inlined, as MarshalText and MarshalJSON are: where the
// caller does not keep the text, it stays on the stack.
func (id ID) String() string {
	var b [maxDigits + 1]byte
	return string(appendInt(b[:0], id))
}

// appendInt is appendDecimal of any number.
func appendInt(b []byte, id ID) []byte {
	if id <= 0 {
		return strconv.AppendInt(b, int64(id), 10)
	}
	return appendDecimal(b, uint64(id))
}

// AppendText appends the text of id to b: up to 19 bytes, for which it allocates
// nothing where b has room. A negative id is an error.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if id < 0 {
		return b, neverIssued(id)
	}
	return appendDecimal(b, uint64(id)), nil
}

// MarshalText returns the text of id, of the zero ID "0". A negative id is an error.
func (id ID) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, maxDigits))
}

// UnmarshalText is [ParseID], but reads 0 as the zero ID: so it reads what MarshalText
// writes. Use ParseID for an id that is required.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 1 && b[0] == '0' {
		*id = 0
		return nil
	}
	n, err := parseID(b)
	if err == nil {
		*id = n
	}
	return err
}

// MarshalJSON returns the text of id in quotes, of the zero ID "0". A negative id is an
// error.
func (id ID) MarshalJSON() ([]byte, error) {
	return id.appendJSON(make([]byte, 0, maxDigits+2))
}

func (id ID) appendJSON(b []byte) ([]byte, error) {
	if id < 0 {
		return nil, neverIssued(id)
	}
	return append(appendDecimal(append(b, '"'), uint64(id)), '"'), nil
}

// UnmarshalJSON reads a string or a number, in the same one spelling as
// [ParseID], and 0 as the zero ID. A null leaves the value as it was.
func (id *ID) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' {
		b = b[1 : n-1]
	}
	return id.UnmarshalText(b)
}

// Value returns an int64. The zero ID is an error: written as 0 it would be taken for
// an id, and written as NULL it would hide that a program forgot to get one.
func (id ID) Value() (driver.Value, error) {
	switch {
	case id == 0:
		return nil, errors.New("firn: the zero ID is not written to a database; use sql.Null[firn.ID] where there may be none")
	case id < 0:
		return nil, neverIssued(id)
	}
	return int64(id), nil
}

// Scan reads an int64, a uint64 (a BIGINT UNSIGNED of MySQL) or decimal text from a
// database. Zero, NULL and what is above 2^63-1 are errors.
func (id *ID) Scan(src any) error {
	var n ID
	var err error
	switch v := src.(type) {
	case int64:
		if n = ID(v); n <= 0 {
			err = neverIssued(n)
		}
	case uint64:
		n, err = parseID(strconv.AppendUint(make([]byte, 0, maxDigits+1), v, 10))
	case []byte:
		n, err = parseID(v)
	case string:
		n, err = parseID(v)
	case nil:
		err = errors.New("firn: an id is never NULL; scan into sql.Null[firn.ID] where there may be none")
	default:
		err = fmt.Errorf("firn: cannot scan %T into an id: it is int64, uint64, []byte or string", src)
	}
	if err == nil {
		*id = n
	}
	return err
}

// appendDecimal is [strconv.AppendUint] in half the time for the long numbers
// that ids are: it makes eight digits at once, where strconv divides for every
// two. n is that of an ID.
func appendDecimal(b []byte, n uint64) []byte {
	const eight, sixteen = 1e8, 1e16
	end := len(b)
	if n < eight || cap(b)-end < maxDigits {
		return strconv.AppendUint(b, n, 10)
	}
	s := b[end : end+maxDigits]
	k := 0 // digits there are
	if n < sixteen {
		digits := eightDigits(n / eight)
		zeros := bits.TrailingZeros64(digits&^asciiZeros) / 8
		binary.LittleEndian.PutUint64(s, digits>>(8*zeros))
		k = 8 - zeros
	} else {
		lead := n / sixteen // 1 to 3 digits
		n %= sixteen
		if lead >= 100 {
			s[k] = '0' + byte(lead/100)
			k++
		}
		if lead >= 10 {
			s[k] = '0' + byte(lead/10%10)
			k++
		}
		s[k] = '0' + byte(lead%10)
		k++
		binary.LittleEndian.PutUint64(s[k:], eightDigits(n/eight))
		k += 8
	}
	binary.LittleEndian.PutUint64(s[k:], eightDigits(n%eight))
	return b[:end+k+8]
}

const asciiZeros = 0x3030303030303030 // "00000000"

// eightDigits returns the text of a number below 10^8, the first digit in the
// lowest byte. It divides in halves, all parts of a step at once: a division by
// 100 is a multiplication by 10486/2^20, exact below 43,699; one by 10 is one
// by 103/2^10, exact below 179.
func eightDigits(n uint64) uint64 {
	n = n/1e4 | n%1e4<<32
	hundreds := n * 10486 >> 20 & 0x0000007f_0000007f
	n = hundreds | (n-100*hundreds)<<16
	tens := n * 103 >> 10 & 0x000f000f_000f000f
	n = tens | (n-10*tens)<<8
	return n | asciiZeros
}

func neverIssued(id ID) error {
	if id == 0 {
		return fmt.Errorf("firn: id 0 is never issued")
	}
	return fmt.Errorf("firn: id %d is not positive", int64(id))
}

// A Range is Count ids: First, First+Step, and so on. A Step of 0 is 1. Whoever
// makes one sees to it that all of it lies in 1 to 2^63-1.
type Range struct {
	First ID
	Count int
	Step  int64
}

// All ranges over the ids.
func (r Range) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i := range r.Count {
			if !yield(r.at(i)) {
				return
			}
		}
	}
}

// Last returns the last id, or 0 if there is none.
func (r Range) Last() ID {
	if r.Count <= 0 {
		return 0
	}
	return r.at(r.Count - 1)
}

func (r Range) at(i int) ID {
	step := r.Step
	if step == 0 {
		step = 1
	}
	return r.First + ID(int64(i)*step)
}

// A SyntaxError says what is wrong with a text and where.
type SyntaxError struct {
	Kind   string // what it should have been: "id" or "layout"
	Text   string // all of it
	Offset int    // of the byte where the fault begins, from 0
	Reason string
}

// shownText is how many bytes of a text an error shows: any sensible layout.
const shownText = 160

func (e *SyntaxError) Error() string {
	text := strconv.Quote(e.Text)
	if len(e.Text) > shownText {
		text = strconv.Quote(e.Text[:shownText]) + "..."
	}
	return fmt.Sprintf("firn: %s %s, column %d: %s", e.Kind, text, e.Offset+1, e.Reason)
}

// Retryable is false; see firn.Retryable.
func (*SyntaxError) Retryable() bool { return false }
