package public

import (
	"crypto/aes"
	"fmt"

	"github.com/firn-id/firn"
)

// A Cipher is a permutation of all ids that depends on a key and on the series:
// FF1 of NIST SP 800-38G with AES-256, radix 2, 63 bits, the name of the series as
// the tweak. What it makes of an id is a positive 64-bit number that says nothing of
// time, order or count to whoever has not the key, and no two ids make the same.
//
// Every positive number is that of some id: a number that is made up reads as an id
// that most likely was never issued. Only a [Opaque] can be told from a forged one.
//
// A number carries no key number, so that there is one key for all time: with
// another one, all numbers change. Who loses the key cannot read any number back.
type Cipher struct {
	permutation *ff1
	series      string
	encoding    Encoding
}

// CipherOptions are the options of a [Cipher].
type CipherOptions struct {
	Encoding Encoding // of the permuted number; 0 is Decimal
}

// NewCipher makes the cipher of a series; nil options are the defaults.
func NewCipher(series string, key Key, opts *CipherOptions) (*Cipher, error) {
	if err := checkSeries(series); err != nil {
		return nil, err
	}
	if err := checkKeys([]Key{key}); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = new(CipherOptions)
	}
	c := &Cipher{series: series, encoding: opts.Encoding.orDecimal()}
	if !c.encoding.IsValid() {
		return nil, c.encoding.unknown()
	}
	secret := key.derive("cipher")
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return nil, fmt.Errorf("public: %w", err)
	}
	c.permutation = newFF1(block, 2, 63, []byte(series))
	return c, nil
}

// lowHalf is the bits of the second half of an id: 32, after 31.
const lowHalf = 32

// Encrypt returns the number that stands for id outside.
func (c *Cipher) Encrypt(id firn.ID) (firn.ID, error) { return c.walk(id, (*ff1).encrypt) }

// Decrypt returns the id that a number stands for.
func (c *Cipher) Decrypt(n firn.ID) (firn.ID, error) { return c.walk(n, (*ff1).decrypt) }

// walk permutes until the number is an id. The permutation is of the numbers from
// 0, and 0 is no id: the one id that becomes 0 becomes what 0 becomes.
func (c *Cipher) walk(id firn.ID, step func(*ff1, uint64, uint64) (uint64, uint64)) (firn.ID, error) {
	switch {
	case c == nil || c.permutation == nil:
		return 0, ErrNoForm
	case id <= 0:
		return 0, neverIssued(id)
	}
	for {
		high, low := step(c.permutation, uint64(id)>>lowHalf, uint64(id)&(1<<lowHalf-1))
		if id = firn.ID(high<<lowHalf | low); id != 0 {
			return id, nil
		}
	}
}

// Append appends the text of the number that stands for id.
func (c *Cipher) Append(dst []byte, id firn.ID) ([]byte, error) {
	n, err := c.Encrypt(id)
	if err != nil {
		return dst, err
	}
	return c.encoding.Append(dst, n)
}

// Parse reads the text of a number, and returns the id that it stands for.
func (c *Cipher) Parse(text string) (firn.ID, error) {
	if c == nil {
		return 0, ErrNoForm
	}
	n, err := c.encoding.Parse(text)
	if err != nil {
		return 0, err
	}
	return c.Decrypt(n)
}

// String says what it is, and nothing of the key.
func (c *Cipher) String() string {
	if c == nil {
		return "no cipher"
	}
	return "cipher of " + c.series
}
