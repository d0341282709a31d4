package public

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

// vectors are known answers, made by another program that was written from the
// description in docs/reference/public-forms.md.
type vectors struct {
	Keys   []string
	Cipher []struct {
		Key        int
		Series     string
		ID, Number firn.ID
	}
	Opaque []struct {
		Key            int
		Series, Prefix string
		ID             firn.ID
		Text           string
	}
}

func loadVectors(t testing.TB) (v vectors, keys map[int]Key) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys = map[int]Key{}
	for _, text := range v.Keys {
		k, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		keys[k.Number()] = k
	}
	return v, keys
}

func testKey(t testing.TB, number int) Key {
	t.Helper()
	k, err := NewKey(number)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// allForms are all forms of this package, with known keys.
func allForms(t testing.TB) map[string]Form {
	t.Helper()
	_, keys := loadVectors(t)
	opaque, err := NewOpaque("photo", []Key{keys[1], keys[58]}, &OpaqueOptions{Prefix: "photo"})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := NewOpaque("photo", []Key{keys[58]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cipher, err := NewCipher("photo", keys[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	short, err := NewCipher("photo", keys[1], &CipherOptions{Encoding: Base58})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Form{
		"opaque": opaque, "opaque without prefix": bare, "cipher": cipher, "cipher base58": short,
		"reversed": Reversed{}, "reversed base62": Reversed{Base62},
	}
	for _, e := range Encodings() {
		all[e.String()] = e
	}
	return all
}

// anyID draws ids of every length, and those at the ends.
func anyID() *rapid.Generator[firn.ID] {
	return rapid.Custom(func(t *rapid.T) firn.ID {
		if rapid.IntRange(0, 9).Draw(t, "end") == 0 {
			return rapid.SampledFrom([]firn.ID{1, 2, 57, 58, 61, 62, 63, 64, math.MaxInt64 - 1, math.MaxInt64}).Draw(t, "id")
		}
		bits := rapid.IntRange(1, 63).Draw(t, "bits")
		return firn.ID(rapid.Uint64Range(1<<(bits-1), 1<<bits-1).Draw(t, "id"))
	})
}

// What a form writes it reads, and nothing else that stands for the same id.
func TestRoundTrip(t *testing.T) {
	for name, f := range allForms(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				id := anyID().Draw(t, "id")
				text, err := textOf(f, id)
				if err != nil {
					t.Fatal(err)
				}
				if back, err := f.Parse(text); err != nil || back != id {
					t.Fatalf("%d is written %s, which reads as %d, %v", id, text, back, err)
				}
				// One letter is another, is missing, or is there twice.
				const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_ =+/\x00\xff"
				i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
				c := letters[rapid.IntRange(0, len(letters)-1).Draw(t, "letter")]
				for _, other := range []string{
					text[:i] + string(c) + text[i+1:], text[:i] + text[i+1:], text[:i] + text[i:i+1] + text[i:],
					strings.ToUpper(text), strings.ToLower(text), " " + text, text + "\n",
				} {
					if back, err := f.Parse(other); err == nil && other != text && back == id {
						t.Fatalf("%d is written %s, and read from %s too", id, text, other)
					}
				}
			})
		})
	}
}

// No form writes or reads what is not an id.
func TestNotAnID(t *testing.T) {
	for name, f := range allForms(t) {
		for _, id := range []firn.ID{0, -1, math.MinInt64} {
			if b, err := f.Append([]byte("x"), id); err == nil || string(b) != "x" {
				t.Errorf("%s: Append of %d: %q, %v", name, id, b, err)
			}
		}
		for _, text := range []string{"", " ", "+1", strings.Repeat("0", 16), strings.Repeat("z", 22), strings.Repeat("1", 1<<20), "\xff\xfe", "日本語"} {
			id, err := f.Parse(text)
			if err == nil || id != 0 {
				t.Errorf("%s: Parse(%.30q): %d, %v", name, text, id, err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
		}
	}
}

// Forms that are not there give errors, and neither a panic nor a plain id.
func TestNoForm(t *testing.T) {
	for name, f := range map[string]Form{
		"nil opaque": (*Opaque)(nil), "zero opaque": new(Opaque), "nil cipher": (*Cipher)(nil), "zero cipher": new(Cipher),
	} {
		if b, err := f.Append(nil, 5); !errors.Is(err, ErrNoForm) || len(b) > 0 {
			t.Errorf("%s: Append: %q, %v", name, b, err)
		}
		if _, err := f.Parse("5"); err == nil {
			t.Errorf("%s: Parse: no error", name)
		}
	}
	if text, err := textOf((*Opaque)(nil), 5); !errors.Is(err, ErrNoForm) || text != "" {
		t.Errorf("Text: %q, %v", text, err)
	}
	if b, err := Encoding(0).Append(nil, 5); err == nil || len(b) > 0 {
		t.Errorf("zero Encoding: %q, %v", b, err)
	}
	for _, f := range []Form{Encoding(99), Reversed{Encoding: 99}} {
		if _, err := f.Parse("5"); err == nil || err.Error() != "public: there is no Encoding(99)" {
			t.Errorf("%v: Parse: %v", f, err)
		}
		if b, err := f.Append(nil, 5); err == nil || err.Error() != "public: there is no Encoding(99)" || len(b) > 0 {
			t.Errorf("%v: Append: %q, %v", f, b, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 64)
	for name, f := range allForms(t) {
		id := firn.ID(rand.Int64N(math.MaxInt64) + 1)
		text, err := textOf(f, id)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { buf, _ = f.Append(buf[:0], id) }); n >= 1 {
			t.Errorf("%s: Append allocates %g", name, n)
		}
		if n := testing.AllocsPerRun(100, func() { f.Parse(text) }); n >= 1 {
			t.Errorf("%s: Parse allocates %g", name, n)
		}
	}
}

func BenchmarkForms(b *testing.B) {
	for name, f := range allForms(b) {
		const first = 318513532264316928
		b.Run(name+"/append", func(b *testing.B) {
			buf := make([]byte, 0, 64)
			id := firn.ID(first)
			for b.Loop() {
				buf, _ = f.Append(buf[:0], id)
				id++
			}
		})
		text, err := textOf(f, first)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/parse", func(b *testing.B) {
			for b.Loop() {
				f.Parse(text)
			}
		})
	}
}

// Whatever a form reads is exactly what it writes.
func FuzzParse(f *testing.F) {
	forms := allForms(f)
	for _, form := range forms {
		for _, id := range []firn.ID{1, 318513532264316928, math.MaxInt64} {
			text, err := textOf(form, id)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, form := range forms {
			id, err := form.Parse(text)
			if err != nil {
				if id != 0 || err.Error() == "" {
					t.Errorf("%s: %d beside %v", name, id, err)
				}
				continue
			}
			if again, err := textOf(form, id); id <= 0 || err != nil || again != text {
				t.Errorf("%s: %q reads as %d, which is written %q, %v", name, text, id, again, err)
			}
		}
	})
}

// textOf is the text of an id in a form.
func textOf(f Form, id firn.ID) (string, error) {
	text, err := f.Append(nil, id)
	return string(text), err
}
