package public

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// An Encoding spells an id in an alphabet. It hides nothing: anybody can read it.
// The zero Encoding is not valid.
type Encoding uint8

// The encodings. Those of fixed width sort as the ids do, byte by byte; the others
// are as short as can be.
const (
	// Decimal is the text of a firn.ID: up to 19 digits.
	Decimal Encoding = 1 + iota
	// Hex has 16 of 0-9 and a-f, and sorts.
	Hex
	// Crockford has 13 of 0-9 and A-Z without I, L, O and U, and sorts. What his
	// paper allows readers besides, i and l for 1, o for 0, small letters and
	// hyphens, is refused: an id has one text.
	Crockford
	// Base58 has up to 11 letters, in the order of Bitcoin: 1-9, A-Z without I and
	// O, a-z without l.
	Base58
	// Flickr58 is Base58 with small letters before capitals, as in Flickr's short
	// links and bwmarrin/snowflake.
	Flickr58
	// Base62 has 11 of 0-9, A-Z and a-z, and sorts.
	Base62
	// Base64URL is what Instagram's short codes are: the number in digits of 6
	// bits, without leading zeros: up to 11 of A-Z, a-z, 0-9, - and _.
	Base64URL
)

// An alphabet is what an encoding does.
type alphabet struct {
	name    string
	base    uint64
	bits    int       // of a letter; 0: not a whole number
	width   int       // letters in the text of any id; 0: as many as it takes
	longest int       // letters there are at most
	five    uint64    // the base to the power of five
	inverse uint64    // 2^36 / base, rounded up
	fifth   uint64    // 2^93 / five, rounded up
	letters [64]byte  // by value
	values  [256]byte // by letter, or noValue
}

const noValue = 0xff

var alphabets = [...]*alphabet{
	Decimal:   {name: "decimal"},
	Hex:       newAlphabet("hex", "0123456789abcdef", 16),
	Crockford: newAlphabet("crockford", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13),
	Base58:    newAlphabet("base58", bitcoin, 0),
	Flickr58:  newAlphabet("flickr58", "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", 0),
	Base62:    newAlphabet("base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11),
	Base64URL: newAlphabet("base64url", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 0),
}

const bitcoin = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

func newAlphabet(name, letters string, width int) *alphabet {
	a := &alphabet{name: name, base: uint64(len(letters)), width: width, longest: max(width, digits)}
	if a.base&(a.base-1) == 0 {
		a.bits = bits.TrailingZeros64(a.base)
	} else {
		a.five = a.base * a.base * a.base * a.base * a.base
		a.inverse = 1<<36/a.base + 1
		a.fifth, _ = bits.Div64(1<<29, 0, a.five)
		a.fifth++
	}
	copy(a.letters[:], letters)
	for i := range a.values {
		a.values[i] = noValue
	}
	for i := range len(letters) {
		a.values[letters[i]] = byte(i)
	}
	return a
}

// Encodings returns all encodings.
func Encodings() []Encoding {
	var all []Encoding
	for e := Decimal; int(e) < len(alphabets); e++ {
		all = append(all, e)
	}
	return all
}

// ParseEncoding returns the encoding of that name, such as base62.
func ParseEncoding(name string) (Encoding, error) {
	var names []string
	for _, e := range Encodings() {
		if e.String() == name {
			return e, nil
		}
		names = append(names, e.String())
	}
	return 0, fmt.Errorf("public: there is no encoding %q; there are %s", name, strings.Join(names, ", "))
}

// IsValid reports whether e is one of the encodings.
func (e Encoding) IsValid() bool { return e != 0 && int(e) < len(alphabets) }

// String returns the name of the encoding: decimal, hex, crockford, base58,
// flickr58, base62, base64url.
func (e Encoding) String() string {
	if !e.IsValid() {
		return "Encoding(" + strconv.Itoa(int(e)) + ")"
	}
	return alphabets[e].name
}

// unknown says why an encoding that is not valid is none.
func (e Encoding) unknown() error {
	if e == 0 {
		return errors.New("public: the zero Encoding is not valid")
	}
	return fmt.Errorf("public: there is no %s", e)
}

// Append appends the text of id. It allocates nothing where dst has room for 19
// bytes.
func (e Encoding) Append(dst []byte, id firn.ID) ([]byte, error) {
	switch {
	case !e.IsValid():
		return dst, e.unknown()
	case id <= 0:
		return dst, neverIssued(id)
	case e == Decimal:
		return id.AppendText(dst)
	}
	return alphabets[e].append(dst, uint64(id)), nil
}

// Parse reads the text of an id.
func (e Encoding) Parse(text string) (firn.ID, error) {
	switch {
	case !e.IsValid():
		return 0, e.unknown()
	case e == Decimal:
		return firn.ParseID(text)
	}
	return alphabets[e].parse(text)
}

func (a *alphabet) append(dst []byte, n uint64) []byte {
	const most = 16 // letters of any alphabet
	var b [most]byte
	first := most - a.longest
	if a.bits > 0 {
		for i := most - 1; i >= first; i-- {
			b[i] = a.letters[n&(a.base-1)&63]
			n >>= a.bits & 63
		}
	} else {
		a.eleven((*[digits]byte)(b[most-digits:]), n)
	}
	if a.width == 0 {
		for zero := a.letters[0]; b[first&(most-1)] == zero; { // n is not 0
			first++
		}
	}
	return append(dst, b[first:]...)
}

// digits is how many digits a number of 63 bits has in the bases 58, 62 and 64.
const digits = 11

// eleven writes all digits of n in a base of 58 to 62, leading zeros too. n is
// divided into one digit and twice five, which do not wait for each other.
//
// Divisions are multiplications: by inverse they are exact below 2^36/62, where a
// number of five digits is, and by fifth below 2^63.
func (a *alphabet) eleven(b *[digits]byte, n uint64) {
	rest, _ := bits.Mul64(n, a.fifth)
	rest >>= 29
	low := n - rest*a.five
	first, _ := bits.Mul64(rest, a.fifth)
	first >>= 29
	high := rest - first*a.five
	for i := 5; i > 0; i-- {
		h, l := high*a.inverse>>36, low*a.inverse>>36
		b[i] = a.letters[(high-h*a.base)&63]
		b[i+5] = a.letters[(low-l*a.base)&63]
		high, low = h, l
	}
	b[0] = a.letters[first&63]
}

func (a *alphabet) parse(text string) (firn.ID, error) {
	if len(text) == 0 || len(text) > a.longest || a.width > 0 && len(text) != a.width {
		return 0, a.fault(text)
	}
	// All letters but the last are below 2^63, of any alphabet.
	var n, all uint64
	last := len(text) - 1
	for i := range last {
		v := uint64(a.values[text[i]])
		all |= v
		n = n*a.base + v
	}
	v := uint64(a.values[text[last]])
	over, n := bits.Mul64(n, a.base)
	above := over != 0 || n > math.MaxInt64-v
	leading := a.width == 0 && text[0] == a.letters[0]
	if all|v >= 64 || above || leading || n+v == 0 {
		return 0, a.fault(text)
	}
	return firn.ID(n + v), nil
}

// fault says why text is not the text of an id.
func (a *alphabet) fault(text string) error {
	fail := func(offset int, format string, args ...any) error {
		return &firn.SyntaxError{Kind: a.name, Text: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return fail(0, "the text is empty")
	}
	if err := foreignLetter(a, text, 0, fail); err != nil {
		return err
	}
	switch {
	case a.width > 0 && len(text) != a.width:
		return fail(min(len(text), a.width), "it has %d characters, not %d", a.width, len(text))
	case a.width == 0 && text[0] == a.letters[0]:
		if len(text) == 1 {
			return fail(0, "%q is zero, which is never issued", text)
		}
		return fail(0, "it has no leading zero, which is what %q is", text[:1])
	case len(text) > a.longest:
		return fail(a.longest, "it has at most %d characters, not %d", a.longest, len(text))
	case strings.Trim(text, string(a.letters[:1])) == "":
		return fail(0, "zero is never issued")
	}
	return fail(0, "above %d", int64(math.MaxInt64))
}

// foreignLetter reports the first letter from that offset on that is not one of
// the alphabet, and what it may have been.
func foreignLetter(a *alphabet, text string, from int, fail func(int, string, ...any) error) error {
	for i := from; i < len(text); i++ {
		if a.values[text[i]] != noValue {
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		letter := text[i : i+size]
		is := string(a.letters[:a.base])
		for _, similar := range [...]string{strings.ToUpper(letter), strings.ToLower(letter), lookalike[letter]} {
			if similar != "" && strings.Contains(is, similar) {
				return fail(i, "%q is not one of its characters; is it %q?", letter, similar)
			}
		}
		return fail(i, "%q is not one of its characters", letter)
	}
	return nil
}

// lookalike are the letters that Crockford allows for others.
var lookalike = map[string]string{"i": "1", "I": "1", "l": "1", "L": "1", "o": "0", "O": "0"}
