package public

import (
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
)

func newOpaque(t testing.TB, series, prefix string, keys ...Key) *Opaque {
	t.Helper()
	opaque, err := NewOpaque(series, keys, &OpaqueOptions{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return opaque
}

func mustText(t testing.TB, f Form, id firn.ID) string {
	t.Helper()
	text, err := textOf(f, id)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOpaqueVectors(t *testing.T) {
	v, keys := loadVectors(t)
	if len(v.Opaque) < 10 {
		t.Fatalf("%d vectors", len(v.Opaque))
	}
	for _, tt := range v.Opaque {
		f := newOpaque(t, tt.Series, tt.Prefix, keys[tt.Key])
		if text := mustText(t, f, tt.ID); text != tt.Text {
			t.Errorf("%s: %d is written %s, want %s", tt.Series, tt.ID, text, tt.Text)
		}
		if id, err := f.Parse(tt.Text); err != nil || id != tt.ID {
			t.Errorf("%s: %s reads as %d, %v, want %d", tt.Series, tt.Text, id, err, tt.ID)
		}
	}
}

// An opaque id that differs in one letter is refused, whichever it is and whatever it
// is: by its letters, its key or its tag.
func TestOpaqueChanged(t *testing.T) {
	f := newOpaque(t, "photo", "photo", testKey(t, 1), testKey(t, 2))
	text := mustText(t, f, 318513532264316928)
	for i := len("photo_"); i < len(text); i++ {
		for _, c := range []byte(bitcoin) {
			if c == text[i] {
				continue
			}
			id, err := f.Parse(text[:i] + string(c) + text[i+1:])
			var key *KeyError
			var syntax *firn.SyntaxError
			if id != 0 || !errors.Is(err, ErrForged) && !errors.As(err, &key) && !errors.As(err, &syntax) {
				t.Fatalf("%s with %c in column %d reads as %d, %v", text, c, i+1, id, err)
			}
		}
	}
}

// Each bit of the tag counts. A block that is made with the key, which no outsider
// can, is refused for one bit.
func TestOpaqueTag(t *testing.T) {
	f := newOpaque(t, "photo", "", testKey(t, 1))
	k := f.write
	forge := func(id, tag uint64) string {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], id)
		binary.BigEndian.PutUint64(b[8:], tag)
		k.block.Encrypt(b[:], b[:])
		return string(appendBlock([]byte("1"), binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])))
	}
	if id, err := f.Parse(forge(42, k.tag)); err != nil || id != 42 {
		t.Fatalf("%d, %v", id, err)
	}
	for bit := range 64 {
		if id, err := f.Parse(forge(42, k.tag^1<<bit)); !errors.Is(err, ErrForged) || id != 0 {
			t.Errorf("bit %d of the tag: %d, %v", bit, id, err)
		}
	}
	for _, id := range []uint64{0, 1 << 63, 1<<64 - 1} {
		if got, err := f.Parse(forge(id, k.tag)); !errors.Is(err, ErrForged) || got != 0 {
			t.Errorf("id %d: %d, %v", id, got, err)
		}
	}
}

// An opaque id of another series is refused, even if prefix and key are the same; and so
// is one of another secret of the same number.
func TestOpaqueBound(t *testing.T) {
	k := testKey(t, 1)
	photo, user := newOpaque(t, "photo", "x", k), newOpaque(t, "user", "x", k)
	other := newOpaque(t, "photo", "x", testKey(t, 1))
	for id := firn.ID(1); id < 1000; id++ {
		text := mustText(t, photo, id)
		for name, f := range map[string]*Opaque{"another series": user, "another secret": other} {
			if got, err := f.Parse(text); !errors.Is(err, ErrForged) || got != 0 {
				t.Fatalf("%s reads in %s as %d, %v", text, name, got, err)
			}
		}
	}
	if _, err := user.Parse(mustText(t, photo, 5)); err == nil ||
		err.Error() != "public: the opaque id is forged, of another series than user, or of another secret than our key 1" {
		t.Error(err)
	}
}

func TestOpaqueRotation(t *testing.T) {
	one, two, three := testKey(t, 1), testKey(t, 2), testKey(t, 3)
	before := newOpaque(t, "photo", "photo", one)
	learnt := newOpaque(t, "photo", "photo", one, two) // reads the new one, writes the old one
	after := newOpaque(t, "photo", "photo", two, one)
	later := newOpaque(t, "photo", "photo", three, two)
	const id = 318513532264316928
	first, second := mustText(t, before, id), mustText(t, after, id)
	if mustText(t, learnt, id) != first || !strings.HasPrefix(first, "photo_1") || !strings.HasPrefix(second, "photo_2") {
		t.Errorf("%s, %s, %s", first, mustText(t, learnt, id), second)
	}
	for name, f := range map[string]*Opaque{"learnt": learnt, "after": after} {
		for _, text := range []string{first, second} {
			if got, err := f.Parse(text); err != nil || got != id {
				t.Errorf("%s: %s reads as %d, %v", name, text, got, err)
			}
		}
	}
	_, err := later.Parse(first)
	var key *KeyError
	if !errors.As(err, &key) || key.Number != 1 || !slices.Equal(key.Known, []int{3, 2}) ||
		err.Error() != "public: the opaque id is of key 1; there are 3, 2" {
		t.Error(err)
	}
}

func TestOpaqueErrors(t *testing.T) {
	k := testKey(t, 1)
	f, bare := newOpaque(t, "photo", "photo", k), newOpaque(t, "photo", "", k)
	text := mustText(t, f, 42)
	for _, tt := range []struct {
		f      *Opaque
		text   string
		column int
		reason string
	}{
		{f, "", 1, "the text is empty"},
		{f, "user" + text[5:], 1, `it is of "user", not of "photo"`},
		{f, text[6:], 1, "it does not begin with photo_"},
		{f, strings.ToUpper(text), 1, "it does not begin with photo_"},
		{bare, text, 1, "it has no prefix here"},
		{f, "photo_", 7, "behind photo_ it has 23 characters, not 0"},
		{f, text[:20], 21, "behind photo_ it has 23 characters, not 14"},
		{bare, text[6:] + "1", 24, "it has 23 characters, not 24"},
		{f, "photo_1111O1111111111111111", 11, `"O" is not one of its characters; is it "o"?`},
		{f, "photo_0" + text[7:], 7, `"0" is not one of its characters`},
		{f, text[:10] + "-" + text[11:], 11, `"-" is not one of its characters`},
		{f, "photo_1" + strings.Repeat("z", blockDigits), 8, "it is above 128 bits"},
	} {
		_, err := tt.f.Parse(tt.text)
		var syntax *firn.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset+1 != tt.column || syntax.Reason != tt.reason || syntax.Kind != "opaque" {
			t.Errorf("%q: %v, want column %d: %s", tt.text, err, tt.column, tt.reason)
		}
	}
}

func TestNewOpaque(t *testing.T) {
	k := testKey(t, 1)
	same := Key{2, k.secret}
	for _, tt := range []struct {
		series, prefix string
		keys           []Key
		want           string
	}{
		{"", "", []Key{k}, "the name has 1 to 255 bytes"},
		{"photo", "", nil, "there is no key"},
		{"photo", "", []Key{{}}, "the zero Key is not valid"},
		{"photo", "", []Key{k, testKey(t, 1)}, "key 1 is there twice"},
		{"photo", "", []Key{k, same}, "key 1 and key 2 are the same secret"},
		{"photo", "Photo", []Key{k}, `prefix "Photo"`},
		{"photo", "photo_", []Key{k}, `prefix "photo_"`},
		{"photo", "_photo", []Key{k}, `prefix "_photo"`},
		{"photo", "1photo", []Key{k}, `prefix "1photo"`},
		{"photo", strings.Repeat("x", 33), []Key{k}, "up to 32"},
	} {
		if _, err := NewOpaque(tt.series, tt.keys, &OpaqueOptions{Prefix: tt.prefix}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %q: %v, want %s", tt.series, tt.prefix, err, tt.want)
		}
	}
	for _, prefix := range []string{"p", "photo_v2", strings.Repeat("x", 32)} {
		f := newOpaque(t, "photo", prefix, k)
		if id, err := f.Parse(mustText(t, f, 7)); err != nil || id != 7 {
			t.Errorf("prefix %s: %d, %v", prefix, id, err)
		}
	}
}

// Blocks are written as math/big writes them, and read back; what is above 128
// bits is refused.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := []uint64{0, 1, chunk - 1, chunk, 1<<64 - 1}
		any := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom(ends))
		high, low := any.Draw(t, "high"), any.Draw(t, "low")
		n := new(big.Int).SetUint64(high)
		n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(low))
		text := string(appendBlock(nil, high, low))
		if want := slowDigits(n, alphabets[Base58], blockDigits); text != want {
			t.Fatalf("%x %x is %s, want %s", high, low, text, want)
		}
		if h, l, ok := parseBlock(text); !ok || h != high || l != low {
			t.Fatalf("%s is %x %x, %v", text, h, l, ok)
		}
	})
	above := new(big.Int).Lsh(big.NewInt(1), 128)
	highest := new(big.Int).Exp(big.NewInt(58), big.NewInt(blockDigits), nil)
	for range 1000 {
		text := slowDigits(above, alphabets[Base58], blockDigits)
		if _, _, ok := parseBlock(text); ok {
			t.Fatalf("%s, which is %x, is read", text, above)
		}
		// to the highest in 1000 steps
		above.Add(above, new(big.Int).Div(new(big.Int).Sub(highest, new(big.Int).Lsh(big.NewInt(1), 128)), big.NewInt(1001)))
	}
}
