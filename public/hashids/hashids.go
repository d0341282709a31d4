// Package hashids writes ids as Hashids, the short texts of hashids.org, for those who have such links
// already; package public has the other forms in which ids are shown to outsiders. It
// calls github.com/speps/go-hashids, so that programs that do not import this
// package do not compile it.
//
// A hashid is an encoding, not encryption: the salt can be found from a few pairs of
// number and text, and whoever has it reads and makes all of them. For new links
// take an opaque id or a cipher of package public.
package hashids

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/speps/go-hashids/v2"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

// A Form writes each id as the hashid of that one number. It must be made by [New].
type Form struct {
	codec   *hashids.HashID
	longest int // letters of a text
}

var _ public.Form = (*Form)(nil)

// Options must be those that the links were made with.
type Options struct {
	Salt      string // empty: none
	Alphabet  string // at least 16 letters; empty: a-z, A-Z, 1-9 and 0
	MinLength int    // letters of a text at least, 0 to 255
}

// MaxMinLength is the highest MinLength.
const MaxMinLength = 255

// New makes a form; nil options are the defaults.
func New(opts *Options) (*Form, error) {
	if opts == nil {
		opts = new(Options)
	}
	if opts.MinLength < 0 || opts.MinLength > MaxMinLength {
		return nil, fmt.Errorf("public/hashids: a minimal length of %d: it is 0 to %d", opts.MinLength, MaxMinLength)
	}
	data := hashids.NewData()
	data.Salt, data.MinLength = opts.Salt, opts.MinLength
	if opts.Alphabet != "" {
		data.Alphabet = opts.Alphabet
	}
	codec, err := hashids.NewWithData(data)
	if err != nil {
		return nil, fmt.Errorf("public/hashids: %w", err)
	}
	f := &Form{codec: codec}
	// The text of a greater number is never shorter.
	longest, err := f.Append(nil, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	f.longest = utf8.RuneCount(longest)
	return f, nil
}

// Append appends the hashid of id.
func (f *Form) Append(dst []byte, id firn.ID) ([]byte, error) {
	switch {
	case f == nil || f.codec == nil:
		return dst, public.ErrNoForm
	case id <= 0:
		return dst, fmt.Errorf("public/hashids: id %d is never issued", int64(id))
	}
	text, err := f.codec.EncodeInt64([]int64{int64(id)})
	if err != nil {
		return dst, fmt.Errorf("public/hashids: %w", err)
	}
	return append(dst, text...), nil
}

// Parse reads a hashid of one number. It must be exactly what Append writes.
func (f *Form) Parse(text string) (firn.ID, error) {
	if f == nil || f.codec == nil {
		return 0, public.ErrNoForm
	}
	fail := func(offset int, format string, args ...any) (firn.ID, error) {
		return 0, &firn.SyntaxError{Kind: "hashid", Text: text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return fail(0, "the text is empty")
	case utf8.RuneCountInString(text) > f.longest:
		return fail(0, "it has at most %d characters, not %d", f.longest, utf8.RuneCountInString(text))
	}
	numbers, err := f.codec.DecodeInt64WithError(text) // which writes them again, and compares
	switch {
	case err != nil:
		return fail(0, "it is none with this salt, alphabet and minimal length")
	case len(numbers) != 1:
		return fail(0, "it has %d numbers, and an id is one", len(numbers))
	case numbers[0] <= 0:
		return fail(0, "zero is never issued")
	}
	return firn.ID(numbers[0]), nil
}
