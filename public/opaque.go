package public

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// A Token is a text that nobody without the key can read, count or make: one block
// of AES-256 over the id and 64 bits that stand for series and key. A text that was
// made up, or is of another series, is refused, but for one in 2^64.
//
// The text is the prefix and "_", if there is a prefix; a letter for the key's
// number; and 22 letters in base 58: photo_1CUZF3oqQ5zDmu4tGMLEaxm. The same id has
// the same opaque id for as long as the same key writes it.
//
// The first key writes, all read. To change the key, add the new one behind the
// first wherever opaque ids are read, then move it to the front wherever they are
// written; take the old one out when its opaque ids need not be read any more. Who loses
// a key cannot read its opaque ids.
type Opaque struct {
	series string
	prefix string // with its "_"
	write  *opaqueKey
	read   [maxKey + 1]*opaqueKey // by number
}

// OpaqueOptions are the options of a [Opaque].
type OpaqueOptions struct {
	// Prefix says what an id is of: photo_1CUZ... Empty: there is none. It has up
	// to 32 of a-z, 0-9 and _, begins with a letter, and does not end with _.
	Prefix string
}

type opaqueKey struct {
	number int
	block  cipher.Block
	tag    uint64
}

// ErrForged is the error of an opaque id that no key wrote for the series: it is made
// up, changed, or of another series or another secret of the same number.
var ErrForged = errors.New("public: the opaque id is forged")

// A KeyError says that an opaque id is of a key that the form has not.
type KeyError struct {
	Number int   // of the opaque id
	Known  []int // of the form, the one that writes first
}

func (e *KeyError) Error() string {
	known := make([]string, len(e.Known))
	for i, n := range e.Known {
		known[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("public: the opaque id is of key %d; there are %s", e.Number, strings.Join(known, ", "))
}

const blockDigits = 22 // of 128 bits in base 58

var opaquePrefix = regexp.MustCompile(`^[a-z]([a-z0-9_]{0,30}[a-z0-9])?$`)

// checkPrefix returns what is wrong with the prefix of an opaque id, which is not empty.
func checkPrefix(prefix string) error {
	if !opaquePrefix.MatchString(prefix) {
		return fmt.Errorf("public: prefix %q: it has up to 32 of a-z, 0-9 and _, begins with a letter, and does not end with _", prefix)
	}
	return nil
}

// NewOpaque makes the opaque id of a series; nil options are the defaults. The first key
// writes, and all read.
func NewOpaque(series string, keys []Key, opts *OpaqueOptions) (*Opaque, error) {
	if err := checkSeries(series); err != nil {
		return nil, err
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	t := &Opaque{series: series}
	if opts != nil && opts.Prefix != "" {
		if err := checkPrefix(opts.Prefix); err != nil {
			return nil, err
		}
		t.prefix = opts.Prefix + "_"
	}
	for _, k := range keys {
		secret := k.derive("token") // the label is part of the format
		block, err := aes.NewCipher(secret[:])
		if err != nil {
			return nil, fmt.Errorf("public: %w", err)
		}
		t.read[k.number] = &opaqueKey{k.number, block, seriesTag(series, k.number)}
	}
	t.write = t.read[keys[0].number]
	return t, nil
}

// Append appends the opaque id of id. It allocates nothing where dst has room for
// prefix and 24 bytes.
func (t *Opaque) Append(dst []byte, id firn.ID) ([]byte, error) {
	switch {
	case t == nil || t.write == nil:
		return dst, ErrNoForm
	case id <= 0:
		return dst, neverIssued(id)
	}
	b := blocks.Get().(*[16]byte)
	binary.BigEndian.PutUint64(b[:8], uint64(id))
	binary.BigEndian.PutUint64(b[8:], t.write.tag)
	t.write.block.Encrypt(b[:], b[:])
	dst = append(append(dst, t.prefix...), bitcoin[t.write.number-1])
	dst = appendBlock(dst, binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]))
	blocks.Put(b)
	return dst, nil
}

// Parse reads the text of an opaque id.
func (t *Opaque) Parse(text string) (firn.ID, error) {
	if t == nil || t.write == nil {
		return 0, ErrNoForm
	}
	rest, ok := strings.CutPrefix(text, t.prefix)
	if !ok || len(rest) != 1+blockDigits {
		return 0, t.fault(text)
	}
	number := int(alphabets[Base58].values[rest[0]]) + 1
	high, low, ok := parseBlock(rest[1:])
	if number > maxKey || !ok {
		return 0, t.fault(text)
	}
	k := t.read[number]
	if k == nil {
		return 0, &KeyError{number, t.known()}
	}
	b := blocks.Get().(*[16]byte)
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	k.block.Decrypt(b[:], b[:])
	id := binary.BigEndian.Uint64(b[:8])
	var tag [8]byte
	binary.BigEndian.PutUint64(tag[:], k.tag)
	genuine := subtle.ConstantTimeCompare(b[8:], tag[:])
	blocks.Put(b)
	if genuine != 1 || id == 0 || id > math.MaxInt64 {
		return 0, fmt.Errorf("%w, of another series than %s, or of another secret than our key %d", ErrForged, t.series, number)
	}
	return firn.ID(id), nil
}

// known are the numbers of the keys.
func (t *Opaque) known() []int {
	all := []int{t.write.number}
	for number, k := range t.read {
		if k != nil && k != t.write {
			all = append(all, number)
		}
	}
	return all
}

// String says what it is, and nothing of the keys.
func (t *Opaque) String() string {
	if t == nil {
		return "no opaque id"
	}
	return "opaque ids of " + t.series
}

// fault says why text is not an opaque id.
func (t *Opaque) fault(text string) error {
	fail := func(offset int, format string, args ...any) error {
		return &firn.SyntaxError{Kind: "opaque", Text: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	rest, ok := strings.CutPrefix(text, t.prefix)
	i := strings.LastIndexByte(text, '_')
	switch {
	case text == "":
		return fail(0, "the text is empty")
	case !ok && i > 0 && opaquePrefix.MatchString(text[:i]):
		return fail(0, "it is of %q, not of %q", text[:i], strings.TrimSuffix(t.prefix, "_"))
	case !ok:
		return fail(0, "it does not begin with %s", t.prefix)
	case t.prefix == "" && i >= 0:
		return fail(0, "it has no prefix here")
	}
	if err := foreignLetter(alphabets[Base58], text, len(t.prefix), fail); err != nil {
		return err
	}
	if len(rest) != 1+blockDigits {
		where := "it"
		if t.prefix != "" {
			where = "behind " + t.prefix + " it"
		}
		return fail(len(t.prefix)+min(len(rest), 1+blockDigits), "%s has %d characters, not %d", where, 1+blockDigits, len(rest))
	}
	return fail(len(t.prefix)+1, "it is above 128 bits")
}

// chunk is 58^10: 128 bits are two digits and twice ten.
const chunk = 58 * 58 * 58 * 58 * 58 * 58 * 58 * 58 * 58 * 58

// appendBlock appends 128 bits in 22 digits of base 58.
func appendBlock(dst []byte, high, low uint64) []byte {
	var b [2 + 2*digits]byte
	top, rest := high/chunk, high%chunk
	next, last := bits.Div64(rest, low, chunk)
	first, middle := bits.Div64(top, next, chunk)
	a := alphabets[Base58]
	a.eleven((*[digits]byte)(b[2+digits:]), last) // each has a zero in front,
	a.eleven((*[digits]byte)(b[2:]), middle)
	b[1], b[2] = bitcoin[first/58], bitcoin[first%58] // which is written over
	copy(b[2+digits:], b[3+digits:])
	return append(dst, b[1:1+blockDigits]...)
}

// parseBlock is the reverse of appendBlock. It returns false for a letter that is
// none of base 58, and for a number above 128 bits.
func parseBlock(text string) (high, low uint64, ok bool) {
	var parts [3]uint64
	values := &alphabets[Base58].values
	for i := range blockDigits {
		v := values[text[i]]
		if v == noValue {
			return 0, 0, false
		}
		part := &parts[(i+8)/10]
		*part = *part*58 + uint64(v)
	}
	// (first*chunk + middle)*chunk + last; first*chunk + middle has 71 bits.
	high, low = bits.Mul64(parts[0], chunk)
	low, carry := bits.Add64(low, parts[1], 0)
	high += carry
	over, top := bits.Mul64(high, chunk)
	high, low = bits.Mul64(low, chunk)
	low, carry = bits.Add64(low, parts[2], 0)
	high, carry = bits.Add64(high, top, carry)
	return high, low, over == 0 && carry == 0
}
