// Package public writes ids for outsiders and reads them back: shorter, without their order
// and count, or so that nobody can make one up.
//
// A [Form] says what an id looks like outside. Inside the program and in the database the id
// stays a number. There are these forms:
//
//	[Encoding]   another spelling of the number; hides nothing
//	[Reversed]   the bits in reverse order, for a database that is divided by ranges; hides nothing
//	[Cipher]     another number; without the key nobody sees order, count or time
//	[Opaque]     a text; without the key nobody can make, read or count one
//
// Packages public/hashids and public/sqids are for links that were made with Hashids or Sqids.
// [ID] is the type of a struct's field that is written in a form in JSON and text, and as a
// bigint in SQL.
//
// Start with [NewOpaque] and [LoadKeys].
//
// An id is a name and never a credential: check who asks, whatever the form.
//
// A form reads exactly what it writes: each id has one text. Parse refuses any other text with
// a [*firn.SyntaxError] that says where the fault is, a [*KeyError] or [ErrForged]. Tell an
// outsider the same of all three: there is no such id.
//
// Forms are safe for concurrent use.
package public

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// A Form writes ids as texts, and reads the texts that it wrote.
type Form interface {
	// Append appends the text of id to dst. It fails for an id that is not
	// positive, and where the form itself is not valid.
	Append(dst []byte, id firn.ID) ([]byte, error)

	// Parse reads the text of an id. It accepts one text for each id: that which
	// Append writes.
	Parse(text string) (firn.ID, error)
}

// ErrNoForm says that the form of an id was not configured. So no id is written as a plain
// number by accident, and none is read.
var ErrNoForm = errors.New("public: no form is configured")

// neverIssued says why a number is not an id.
func neverIssued(id firn.ID) error {
	if id == 0 {
		return errors.New("public: id 0 is never issued")
	}
	return fmt.Errorf("public: id %d is not positive", int64(id))
}

// maxSeries is how long the name of a series may be, in bytes.
const maxSeries = 255

func checkSeries(series string) error {
	if series == "" || len(series) > maxSeries {
		return fmt.Errorf("public: series %q: the name has 1 to %d bytes: keys are used for it, and no other", series, maxSeries)
	}
	return nil
}

// IsNumeric reports whether every text of a form is a positive number of 63 bits, without zeros
// in front. It is so of [Decimal], and of a [Cipher] and [Reversed] of that encoding.
func IsNumeric(f Form) bool {
	switch f := f.(type) {
	case Encoding:
		return f == Decimal
	case Reversed:
		return f.Encoding.orDecimal() == Decimal
	case *Cipher:
		return f != nil && f.encoding == Decimal
	}
	return false
}
