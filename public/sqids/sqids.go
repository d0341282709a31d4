// Package sqids writes ids as Sqids, the short texts of sqids.org, for those who have such links
// already; package public has the other forms in which ids are shown to outsiders. It calls
// github.com/sqids/sqids-go, so that programs that do not import this package do not
// compile it.
//
// A sqid is an encoding, not encryption: whoever has the alphabet reads and makes
// all of them, and the default alphabet is known to everybody. For new links take an
// opaque id or a cipher of package public.
package sqids

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/sqids/sqids-go"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

// A Form writes each id as the sqid of that one number. It must be made by [New].
type Form struct {
	codec   *sqids.Sqids
	longest int // letters of a text
}

var _ public.Form = (*Form)(nil)

// Options must be those that the links were made with.
type Options struct {
	Alphabet  string   // at least 3 letters of one byte each; empty: that of Sqids
	MinLength uint8    // letters of a text at least
	Blocklist []string // words that no text has; nil: that of Sqids; empty: none
}

// New makes a form; nil options are the defaults.
func New(opts *Options) (*Form, error) {
	if opts == nil {
		opts = new(Options)
	}
	if !utf8.ValidString(opts.Alphabet) { // what Sqids writes with it cannot be read
		return nil, errors.New("public/sqids: alphabet must be UTF-8")
	}
	codec, err := sqids.New(sqids.Options{Alphabet: opts.Alphabet, MinLength: opts.MinLength, Blocklist: opts.Blocklist})
	if err != nil {
		return nil, fmt.Errorf("public/sqids: %w", err)
	}
	f := &Form{codec: codec}
	// The text of a greater number is never shorter.
	longest, err := f.Append(nil, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	f.longest = len(longest)
	return f, nil
}

// Append appends the sqid of id. It fails for an id each of whose texts has a
// blocked word, which only happens with a long list and a short alphabet.
func (f *Form) Append(dst []byte, id firn.ID) ([]byte, error) {
	switch {
	case f == nil || f.codec == nil:
		return dst, public.ErrNoForm
	case id <= 0:
		return dst, fmt.Errorf("public/sqids: id %d is never issued", int64(id))
	}
	text, err := f.codec.Encode([]uint64{uint64(id)})
	if err != nil {
		return dst, fmt.Errorf("public/sqids: id %d: %w", int64(id), err)
	}
	return append(dst, text...), nil
}

// Parse reads a sqid of one number. It must be exactly what Append writes, where
// Sqids itself reads several texts as one number.
func (f *Form) Parse(text string) (firn.ID, error) {
	if f == nil || f.codec == nil {
		return 0, public.ErrNoForm
	}
	fail := func(offset int, format string, args ...any) (firn.ID, error) {
		return 0, &firn.SyntaxError{Kind: "sqid", Text: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return fail(0, "the text is empty")
	case len(text) > f.longest:
		return fail(f.longest, "it has at most %d characters, not %d", f.longest, len(text))
	}
	numbers := f.codec.Decode(text)
	switch {
	case len(numbers) == 0:
		return fail(0, "it is none with this alphabet")
	case len(numbers) > 1:
		return fail(0, "it has %d numbers, and an id is one", len(numbers))
	case numbers[0] == 0:
		return fail(0, "zero is never issued")
	case numbers[0] > math.MaxInt64:
		return fail(0, "above %d", int64(math.MaxInt64))
	}
	id := firn.ID(numbers[0])
	if again, err := f.Append(nil, id); err != nil {
		return 0, err
	} else if string(again) != text {
		return fail(0, "it reads as %d, which is written %s with this minimal length and these blocked words", id, again)
	}
	return id, nil
}
