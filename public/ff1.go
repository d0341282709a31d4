package public

import (
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
	"sync"
)

// ff1 is FF1 of NIST SP 800-38G, encryption that keeps the format: it permutes the
// numbers of n digits in a radix. It takes numbers in two halves, the first n/2
// digits and the rest, as the standard does, and each must fit in 64 bits.
//
// The input of a round's pseudo-random function differs from that of any other only
// in the last bytes, the round and a half of the number. All blocks before those
// are enciphered once, when an ff1 is made.
type ff1 struct {
	block       cipher.Block
	highs, lows uint64    // how many numbers each half can be
	width       int       // bytes of a half: b in the standard
	long        bool      // what is added is of 12 bytes, not of 8: d in the standard
	last        [2]uint64 // last block of a round, before round and half are put in
}

const ff1Rounds = 10

// newFF1 makes the permutation of numbers of n digits, for one tweak. The radix to
// the power of (n+1)/2 must be below 2^63.
func newFF1(block cipher.Block, radix uint32, n int, tweak []byte) *ff1 {
	power := func(exp int) uint64 {
		p := uint64(1)
		for range exp {
			p *= uint64(radix)
		}
		return p
	}
	u := n / 2
	f := &ff1{block: block, highs: power(u), lows: power(n - u)}
	f.width = (bits.Len64(f.lows-1) + 7) / 8
	f.long = f.width > 4

	const size = 16
	input := []byte{1, 2, 1, byte(radix >> 16), byte(radix >> 8), byte(radix), ff1Rounds, byte(u)}
	input = binary.BigEndian.AppendUint32(input, uint32(n))
	input = binary.BigEndian.AppendUint32(input, uint32(len(tweak)))
	input = append(input, tweak...)
	for (len(input)+1+f.width)%size != 0 {
		input = append(input, 0)
	}
	input = append(input, make([]byte, 1+f.width)...) // of round and half

	var mac [size]byte // CBC-MAC of the blocks before the last
	for ; len(input) > size; input = input[size:] {
		for i := range mac {
			mac[i] ^= input[i]
		}
		block.Encrypt(mac[:], mac[:])
	}
	for i := range mac {
		mac[i] ^= input[i]
	}
	f.last = [2]uint64{binary.BigEndian.Uint64(mac[:8]), binary.BigEndian.Uint64(mac[8:])}
	return f
}

// Blocks that go through a cipher.Block, an interface, would each be allocated.
var blocks = sync.Pool{New: func() any { return new([16]byte) }}

// encrypt permutes the number of these halves.
func (f *ff1) encrypt(a, b uint64) (high, low uint64) {
	buf := blocks.Get().(*[16]byte)
	for i := range ff1Rounds {
		m := f.modulus(i)
		c := a + f.round(i, b, buf)%m
		if c >= m {
			c -= m
		}
		a, b = b, c
	}
	blocks.Put(buf)
	return a, b
}

// decrypt is the reverse of encrypt.
func (f *ff1) decrypt(a, b uint64) (high, low uint64) {
	buf := blocks.Get().(*[16]byte)
	for i := ff1Rounds - 1; i >= 0; i-- {
		m := f.modulus(i)
		y := f.round(i, a, buf) % m
		c := b - y
		if b < y {
			c += m
		}
		a, b = c, a
	}
	blocks.Put(buf)
	return a, b
}

// modulus is how many numbers the half can be that round i makes.
func (f *ff1) modulus(i int) uint64 {
	if i%2 == 0 {
		return f.highs
	}
	return f.lows
}

// round returns what round i adds to the one half because of the other.
func (f *ff1) round(i int, half uint64, buf *[16]byte) uint64 {
	in := f.last
	in[1] ^= half
	if f.width < 8 {
		in[1] ^= uint64(i) << (8 * f.width)
	} else {
		in[0] ^= uint64(i)
	}
	binary.BigEndian.PutUint64(buf[:8], in[0])
	binary.BigEndian.PutUint64(buf[8:], in[1])
	f.block.Encrypt(buf[:], buf[:])
	if !f.long {
		return binary.BigEndian.Uint64(buf[:])
	}
	return bits.Rem64(uint64(binary.BigEndian.Uint32(buf[:])), binary.BigEndian.Uint64(buf[4:]), f.modulus(i))
}
