package public

import (
	"crypto/aes"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
)

// The sample vectors that NIST publishes for FF1 (FF1samples.pdf): each key,
// without a tweak and with two.
func TestFF1NIST(t *testing.T) {
	const (
		key128 = "2b7e151628aed2a6abf7158809cf4f3c"
		key192 = key128 + "ef4359d8d580aa4f"
		key256 = key192 + "7f036d6f04fc6a94"
		tweak2 = "39383736353433323130"
		tweak3 = "3737373770717273373737"
	)
	for i, tt := range []struct {
		key, tweak   string
		radix        int
		plain, coded string
	}{
		{key128, "", 10, "0123456789", "2433477484"},
		{key128, tweak2, 10, "0123456789", "6124200773"},
		{key128, tweak3, 36, "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
		{key192, "", 10, "0123456789", "2830668132"},
		{key192, tweak2, 10, "0123456789", "2496655549"},
		{key192, tweak3, 36, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
		{key256, "", 10, "0123456789", "6657667009"},
		{key256, tweak2, 10, "0123456789", "1001623463"},
		{key256, tweak3, 36, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	} {
		f := testFF1(t, tt.key, tt.tweak, tt.radix, len(tt.plain))
		if a, b := f.encrypt(halves(t, tt.plain, tt.radix)); !isText(a, b, tt.coded, tt.radix) {
			t.Errorf("sample %d: %s is enciphered to %d, %d, want %s", i+1, tt.plain, a, b, tt.coded)
		}
		if a, b := f.decrypt(halves(t, tt.coded, tt.radix)); !isText(a, b, tt.plain, tt.radix) {
			t.Errorf("sample %d: %s is deciphered to %d, %d, want %s", i+1, tt.coded, a, b, tt.plain)
		}
	}
}

// Vectors in radix 2, of the test suite of Zcash, which uses FF1 on 88 bits.
func TestFF1Binary(t *testing.T) {
	const key = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94"
	zeros, zeroOnes := strings.Repeat("0", 88), strings.Repeat("01", 44)
	const second = "0000100100110101011101111111110011000001101100111110011101110101011010100100010011001111"
	var long [255]byte
	for i := range long {
		long[i] = byte(i)
	}
	for _, tt := range []struct{ tweak, plain, coded string }{
		{"", zeros, second},
		{"", second, "1101101011010001100011110000010011001111110110011101010110100001111001000101011111011000"},
		{"", zeroOnes, "0000111101000001111011010111011111110001100101000000001101101110100010010111001100100110"},
		{hex.EncodeToString(long[:]), zeroOnes, "0111110110001000000111010110000100010101101000000011100111100100100010101101111010100011"},
	} {
		f := testFF1(t, key, tt.tweak, 2, 88)
		if a, b := f.encrypt(halves(t, tt.plain, 2)); !isText(a, b, tt.coded, 2) {
			t.Errorf("%s is enciphered to %044b %044b, want %s", tt.plain, a, b, tt.coded)
		}
		if a, b := f.decrypt(halves(t, tt.coded, 2)); !isText(a, b, tt.plain, 2) {
			t.Errorf("%s is deciphered to %044b %044b, want %s", tt.coded, a, b, tt.plain)
		}
	}
}

func testFF1(t *testing.T, key, tweak string, radix, n int) *ff1 {
	t.Helper()
	k, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	w, err := hex.DecodeString(tweak)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		t.Fatal(err)
	}
	return newFF1(block, uint32(radix), n, w)
}

// halves are the two numbers of a text.
func halves(t *testing.T, text string, radix int) (a, b uint64) {
	t.Helper()
	u := len(text) / 2
	a, err := strconv.ParseUint(text[:u], radix, 64)
	if err != nil {
		t.Fatal(err)
	}
	b, err = strconv.ParseUint(text[u:], radix, 64)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func isText(a, b uint64, text string, radix int) bool {
	u := len(text) / 2
	high, err1 := strconv.ParseUint(text[:u], radix, 64)
	low, err2 := strconv.ParseUint(text[u:], radix, 64)
	return err1 == nil && err2 == nil && a == high && b == low
}
