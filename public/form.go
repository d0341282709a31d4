// Package public writes ids for outsiders and reads them back: shorter, without
// their order and count, or such that nobody can make one up.
//
// A [Form] is what an id looks like outside; inside and in the database it stays
// the number it is. An [Encoding] only spells it differently and hides nothing. A
// [Reversed] spreads neighbours over a range-partitioned database, and hides
// nothing either. A [Cipher] is another positive 64-bit number, without order or
// count, for whoever has not the key. A [Opaque] is a text that nobody without the
// key can make, read or count. [ID] is a field of a struct that is public in JSON
// and text, and a bigint in SQL.
//
// Start with [NewOpaque] and [LoadKeys]. Packages public/hashids and public/sqids
// are for those who have such links already.
//
// An id is a name and never a credential: check who asks, whatever the form.
//
// A form reads exactly what it writes: each id has one text. What is not that is
// refused, with a [*firn.SyntaxError] that says where, a [*KeyError] or
// [ErrForged]. All of them mean the same to an outsider: there is no such id.
//
// Forms are safe for concurrent use.
package public

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// A Form writes ids, and reads what it wrote.
type Form interface {
	// Append appends the text of id to dst. It fails for an id that is not
	// positive, and where the form itself is not valid.
	Append(dst []byte, id firn.ID) ([]byte, error)

	// Parse reads the text of an id. It accepts one text for each id: that which
	// Append writes.
	Parse(text string) (firn.ID, error)
}

// ErrNoForm is the error of an id whose form was not configured: no id is written
// plainly by accident, and none is read.
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
