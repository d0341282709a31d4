package public

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

func TestEncodings(t *testing.T) {
	for _, tt := range []struct {
		e    Encoding
		id   firn.ID
		text string
	}{
		{Decimal, 42, "42"},
		{Hex, 255, "00000000000000ff"},
		{Hex, math.MaxInt64, "7fffffffffffffff"},
		// The number of Crockford's symbols; 519571 is FVCK in ULID's documents.
		{Crockford, 32, "0000000000010"},
		{Crockford, 519571, "000000000FVCK"},
		{Crockford, math.MaxInt64, "7ZZZZZZZZZZZZ"},
		{Base58, 57, "z"},
		{Base58, 58, "21"},
		{Base58, math.MaxInt64, "NQm6nKp8qFC"},
		// As Base58 of bwmarrin/snowflake writes them.
		{Flickr58, 1, "2"},
		{Flickr58, 57, "Z"},
		{Flickr58, 58, "21"},
		{Flickr58, 3392068162, "6aKeFQ"},
		{Flickr58, 175928847299117063, "pFLuuKMHer"},
		{Flickr58, 908540701891980503, "37jtHCfHWhp"},
		{Flickr58, math.MaxInt64, "npL6MjP8Qfc"},
		{Base62, 61, "0000000000z"},
		{Base62, 62, "00000000010"},
		{Base62, math.MaxInt64, "AzL8n0Y58m7"},
		// Posts of Instagram: their media id and the short code in their address.
		{Base64URL, 908540701891980503, "ybyPRoQWzX"},
		{Base64URL, 3597631270905977008, "DHtWpRvMBiw"},
		{Base64URL, 1, "B"},
		{Base64URL, 63, "_"},
		{Base64URL, 64, "BA"},
		{Base64URL, math.MaxInt64, "H__________"},
	} {
		if text, err := textOf(tt.e, tt.id); err != nil || text != tt.text {
			t.Errorf("%s: %d is written %s, %v, want %s", tt.e, tt.id, text, err, tt.text)
		}
		if id, err := tt.e.Parse(tt.text); err != nil || id != tt.id {
			t.Errorf("%s: %s reads as %d, %v, want %d", tt.e, tt.text, id, err, tt.id)
		}
	}
}

// Each fault is named, with its column.
func TestEncodingErrors(t *testing.T) {
	for _, tt := range []struct {
		e      Encoding
		text   string
		column int
		reason string
	}{
		{Base62, "", 1, "the text is empty"},
		{Base62, "0000000002-", 11, `"-" is not one of its characters`},
		{Base62, "00000é00021", 6, `"é" is not one of its characters`},
		{Base62, "0000000021", 11, "it has 11 characters, not 10"},
		{Base62, "000000000021", 12, "it has 11 characters, not 12"},
		{Base62, "00000000000", 1, "zero is never issued"},
		{Base62, "AzL8n0Y58m8", 1, "above 9223372036854775807"},
		{Base62, "zzzzzzzzzzz", 1, "above 9223372036854775807"},
		{Crockford, "00000000000l0", 12, `"l" is not one of its characters; is it "1"?`},
		{Crockford, "0000O00000010", 5, `"O" is not one of its characters; is it "0"?`},
		{Crockford, "000000000fvck", 10, `"f" is not one of its characters; is it "F"?`},
		{Crockford, "000000000FVUK", 12, `"U" is not one of its characters`},
		{Crockford, "00000-0000010", 6, `"-" is not one of its characters`},
		{Crockford, "8000000000000", 1, "above 9223372036854775807"},
		{Hex, "00000000000000FF", 15, `"F" is not one of its characters; is it "f"?`},
		{Hex, "8000000000000000", 1, "above 9223372036854775807"},
		{Base58, "2l", 2, `"l" is not one of its characters; is it "L"?`},
		{Base58, "12", 1, `it has no leading zero, which is what "1" is`},
		{Base58, "1", 1, `"1" is zero, which is never issued`},
		{Base58, "222222222222", 12, "it has at most 11 characters, not 12"},
		{Base64URL, "AB", 1, `it has no leading zero, which is what "A" is`},
		{Base64URL, "IAAAAAAAAAA", 1, "above 9223372036854775807"},
		{Base64URL, "B=", 2, `"=" is not one of its characters`},
		{Base64URL, "B+", 2, `"+" is not one of its characters`},
		{Decimal, "042", 1, "an id has no leading zero"},
	} {
		_, err := tt.e.Parse(tt.text)
		var syntax *firn.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset+1 != tt.column || syntax.Reason != tt.reason || syntax.Text != tt.text {
			t.Errorf("%s: %q: %v, want column %d: %s", tt.e, tt.text, err, tt.column, tt.reason)
		}
	}
}

// Encodings of fixed width sort as the ids do.
func TestEncodingsSort(t *testing.T) {
	for _, e := range []Encoding{Hex, Crockford, Base62} {
		rapid.Check(t, func(t *rapid.T) {
			a, b := anyID().Draw(t, "a"), anyID().Draw(t, "b")
			s, err1 := textOf(e, a)
			u, err2 := textOf(e, b)
			if err1 != nil || err2 != nil || (a < b) != (s < u) || len(s) != len(u) {
				t.Fatalf("%s: %d is %s, %d is %s", e, a, s, b, u)
			}
		})
	}
}

// The digits are those of math/big, for numbers about each multiple of what is
// divided by.
func TestDigits(t *testing.T) {
	for _, e := range []Encoding{Base58, Flickr58, Base62} {
		a := alphabets[e]
		rapid.Check(t, func(t *rapid.T) {
			unit := rapid.SampledFrom([]uint64{1, a.base, a.five, a.five * a.five}).Draw(t, "unit")
			n := rapid.Uint64Range(0, math.MaxInt64/unit).Draw(t, "multiple") * unit
			n += rapid.Uint64Range(0, 2).Draw(t, "above") - 1
			if n > math.MaxInt64 {
				n = math.MaxInt64
			}
			var got [digits]byte
			a.eleven(&got, n)
			if want := slowDigits(new(big.Int).SetUint64(n), a, digits); string(got[:]) != want {
				t.Fatalf("%s: %d is %s, want %s", e, n, got, want)
			}
		})
	}
}

// slowDigits writes n in so many digits.
func slowDigits(n *big.Int, a *alphabet, width int) string {
	const standard = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	text := n.Text(int(a.base))
	text = strings.Repeat("0", width-len(text)) + text
	return strings.Map(func(r rune) rune { return rune(a.letters[strings.IndexRune(standard, r)]) }, text)
}

// Numbers above the highest id are refused, however far above: those about each
// multiple of 2^63, where a number of 64 bits would begin again, too.
func TestEncodingsAbove(t *testing.T) {
	for _, e := range Encodings()[1:] {
		a := alphabets[e]
		highest := new(big.Int).Exp(new(big.Int).SetUint64(a.base), big.NewInt(int64(a.longest)), nil)
		refused := 0
		for multiple := int64(1); ; multiple++ {
			from := new(big.Int).Lsh(big.NewInt(multiple), 63)
			if from.Cmp(highest) >= 0 || multiple > 20 {
				break
			}
			for above := range int64(200) {
				n := new(big.Int).Add(from, big.NewInt(above))
				if n.Cmp(highest) >= 0 {
					break
				}
				var text string
				for rest, digit := new(big.Int).Set(n), new(big.Int); rest.Sign() > 0; {
					rest.DivMod(rest, new(big.Int).SetUint64(a.base), digit)
					text = string(a.letters[digit.Int64()]) + text
				}
				if id, err := e.Parse(text); err == nil {
					t.Fatalf("%s: %s, which is %d, reads as %d", e, text, n, id)
				}
				refused++
			}
		}
		if refused < 200 {
			t.Errorf("%s: %d texts were tried", e, refused)
		}
	}
}

func TestParseEncoding(t *testing.T) {
	for _, e := range Encodings() {
		if got, err := ParseEncoding(e.String()); got != e || err != nil {
			t.Errorf("%s: %v, %v", e, got, err)
		}
	}
	for _, name := range []string{"", "Base62", "Encoding(0)"} {
		if e, err := ParseEncoding(name); err == nil {
			t.Errorf("%q: %v", name, e)
		}
	}
}

func TestReverse(t *testing.T) {
	for _, tt := range []struct{ id, want firn.ID }{
		{1, 1 << 62}, // as BIT_REVERSE(1, true) of Spanner
		{6148914691236517205, 6148914691236517205}, // 0101...: its own
		{math.MaxInt64, math.MaxInt64},
		{2, 1 << 61},
	} {
		if got := Reverse(tt.id); got != tt.want || Reverse(got) != tt.id {
			t.Errorf("%d is %d, want %d", tt.id, got, tt.want)
		}
	}
	// Ids of one tick are in as many ranges as there are of them.
	seen := map[firn.ID]bool{}
	for id := range firn.ID(256) {
		seen[Reverse(1<<60+id)>>55] = true
	}
	if len(seen) != 256 {
		t.Errorf("256 ids are in %d ranges", len(seen))
	}
}
