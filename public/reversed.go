package public

import (
	"math/bits"

	"github.com/firn-id/firn"
)

// Reverse returns id with its 63 bits in reverse order: bit 0 becomes bit 62. It is
// positive, its own reverse, and what BIT_REVERSE(id, true) of Spanner returns.
//
// Ids made one after the other are far apart when reversed, so that a database
// that is divided by ranges of the key (Spanner, TiDB, CockroachDB, HBase) does not
// get all new rows in its last range. Anybody can reverse it: it hides nothing.
func Reverse(id firn.ID) firn.ID {
	return firn.ID(bits.Reverse64(uint64(id)) >> 1)
}

// Reversed is the form that writes the [Reverse] of an id. The zero Reversed is
// decimal.
type Reversed struct {
	Encoding Encoding // of the reversed number; 0 is Decimal
}

// Append appends the text of the reversed id.
func (r Reversed) Append(dst []byte, id firn.ID) ([]byte, error) {
	if id <= 0 {
		return dst, neverIssued(id)
	}
	return r.Encoding.orDecimal().Append(dst, Reverse(id))
}

// Parse reads the text of a reversed id.
func (r Reversed) Parse(text string) (firn.ID, error) {
	n, err := r.Encoding.orDecimal().Parse(text)
	if err != nil {
		return 0, err
	}
	return Reverse(n), nil
}

func (e Encoding) orDecimal() Encoding {
	if e == 0 {
		return Decimal
	}
	return e
}
