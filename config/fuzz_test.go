package config

import (
	"testing"

	"github.com/firn-id/firn/internal/phrase"
)

// FuzzParseDuration reads any duration: what is read is written as it is read again.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"5m", "1h0m0s", "-1s", "5", "1.5h", "9223372036854775807ns", "2562047h47m16.854775807s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			if d != 0 {
				t.Fatalf("%q: %s beside %v", text, d, err)
			}
			return
		}
		if again, err := parseDuration(phrase.Duration(d)); d < 0 || err != nil || again != d {
			t.Fatalf("%q: %s is written %s and read as %s, %v", text, d, phrase.Duration(d), again, err)
		}
	})
}

// FuzzParseHash reads any hash of a token: beside an error there is none.
func FuzzParseHash(f *testing.F) {
	for _, s := range []string{"", "sha256:00", "sha256:", HashPrefix + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if hash, err := parseHash(text); err != nil && hash != [32]byte{} {
			t.Fatalf("%q: %x beside %v", text, hash, err)
		}
	})
}
