package public

import (
	"math"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

func TestCipherVectors(t *testing.T) {
	v, keys := loadVectors(t)
	if len(v.Cipher) < 10 {
		t.Fatalf("%d vectors", len(v.Cipher))
	}
	for _, tt := range v.Cipher {
		c, err := NewCipher(tt.Series, keys[tt.Key], nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Encrypt(tt.ID); err != nil || n != tt.Number {
			t.Errorf("%s: %d is %d, %v, want %d", tt.Series, tt.ID, n, err, tt.Number)
		}
		if id, err := c.Decrypt(tt.Number); err != nil || id != tt.ID {
			t.Errorf("%s: %d is of %d, %v, want %d", tt.Series, tt.Number, id, err, tt.ID)
		}
	}
}

// The id that the plain permutation maps to 0 becomes what 0 becomes, and back.
func TestCipherWalks(t *testing.T) {
	for range 20 {
		c, err := NewCipher("photo", testKey(t, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		join := func(high, low uint64) firn.ID { return firn.ID(high<<lowHalf | low) }
		toZero, ofZero := join(c.permutation.decrypt(0, 0)), join(c.permutation.encrypt(0, 0))
		if n, err := c.Encrypt(toZero); err != nil || n != ofZero {
			t.Errorf("%d, which would be 0, is %d, %v, want %d", toZero, n, err, ofZero)
		}
		if id, err := c.Decrypt(ofZero); err != nil || id != toZero {
			t.Errorf("%d is of %d, %v, want %d", ofZero, id, err, toZero)
		}
	}
}

// Neighbours become numbers that differ in about half of their bits, and no two
// the same; another series and another key are other permutations.
func TestCipherScatters(t *testing.T) {
	k := testKey(t, 1)
	photo, err := NewCipher("photo", k, nil)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := NewCipher("orders", k, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewCipher("photo", testKey(t, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	seen := map[firn.ID]bool{}
	differ, rises := 0, 0
	var last firn.ID
	for id := firn.ID(1); id <= n; id++ {
		a, _ := photo.Encrypt(id)
		b, _ := orders.Encrypt(id)
		c, _ := other.Encrypt(id)
		if a <= 0 || seen[a] || a == b || a == c {
			t.Fatalf("%d is %d, of another series %d, of another key %d", id, a, b, c)
		}
		seen[a] = true
		differ += bits.OnesCount64(uint64(a ^ last))
		if a > last {
			rises++
		}
		last = a
	}
	if mean := float64(differ) / n; mean < 31 || mean > 32 { // of 31.5, with a deviation of 0.03
		t.Errorf("neighbours differ in %.2f bits", mean)
	}
	if rises < n*48/100 || rises > n*52/100 {
		t.Errorf("%d of %d are above the one before", rises, n)
	}
}

// Every number is that of one id: no two numbers read as the same.
func TestCipherBijection(t *testing.T) {
	c, err := NewCipher("photo", testKey(t, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := anyID().Draw(t, "number")
		id, err := c.Decrypt(n)
		if err != nil || id <= 0 {
			t.Fatalf("%d is of %d, %v", n, id, err)
		}
		if again, err := c.Encrypt(id); err != nil || again != n {
			t.Fatalf("%d is of %d, which is %d, %v", n, id, again, err)
		}
	})
}

func TestNewCipher(t *testing.T) {
	k := testKey(t, 1)
	for _, tt := range []struct {
		series string
		key    Key
		opts   *CipherOptions
		want   string
	}{
		{"", k, nil, "the name has 1 to 255 bytes"},
		{strings.Repeat("x", 256), k, nil, "the name has 1 to 255 bytes"},
		{"photo", Key{}, nil, "the zero Key is not valid"},
		{"photo", k, &CipherOptions{Encoding: 99}, "there is no Encoding(99)"},
	} {
		if _, err := NewCipher(tt.series, tt.key, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.10s: %v, want %s", tt.series, err, tt.want)
		}
	}
	// A series of any length the tweak of the standard has room for.
	for n := range maxSeries {
		c, err := NewCipher(strings.Repeat("s", n+1), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := c.Encrypt(math.MaxInt64); err != nil {
			t.Fatal(err)
		} else if id, err := c.Decrypt(a); err != nil || id != math.MaxInt64 {
			t.Errorf("series of %d characters: %d, %v", n+1, id, err)
		}
	}
}
