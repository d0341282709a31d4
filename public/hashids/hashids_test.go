package hashids

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

func newForm(t testing.TB, o Options) *Form {
	t.Helper()
	f, err := New(&o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The known answers that Hashids publishes in the descriptions of its libraries.
func TestOfficial(t *testing.T) {
	const salt = "this is my salt"
	for _, tt := range []struct {
		o       Options
		numbers []int64
		text    string
	}{
		{Options{Salt: salt}, []int64{12345}, "NkK9"},
		{Options{Salt: salt}, []int64{1}, "NV"},
		{Options{Salt: salt}, []int64{2}, "6m"},
		{Options{Salt: salt}, []int64{3}, "yD"},
		{Options{Salt: salt}, []int64{4}, "2l"},
		{Options{Salt: salt}, []int64{5}, "rD"},
		{Options{Salt: salt, MinLength: 8}, []int64{1}, "gB0NV05e"},
		{Options{Salt: salt, Alphabet: "0123456789abcdef"}, []int64{1234567}, "b332db5"},
		{Options{Salt: salt}, []int64{683, 94108, 123, 5}, "aBMswoO2UB3Sj"},
		{Options{Salt: salt}, []int64{5, 5, 5, 5}, "1Wc8cwcE"},
		{Options{Salt: salt}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "kRHnurhptKcjIDTWC3sx"},
	} {
		f := newForm(t, tt.o)
		if text, err := f.codec.EncodeInt64(tt.numbers); err != nil || text != tt.text {
			t.Errorf("%v is written %s, %v, want %s", tt.numbers, text, err, tt.text)
		}
		id, err := f.Parse(tt.text)
		if len(tt.numbers) > 1 {
			var syntax *firn.SyntaxError
			if !errors.As(err, &syntax) {
				t.Errorf("%s, which is %d numbers, reads as %d, %v", tt.text, len(tt.numbers), id, err)
			}
			continue
		}
		if err != nil || int64(id) != tt.numbers[0] {
			t.Errorf("%s reads as %d, %v, want %d", tt.text, id, err, tt.numbers[0])
		}
		if text, err := f.Append(nil, id); err != nil || string(text) != tt.text {
			t.Errorf("%d is written %s, %v, want %s", id, text, err, tt.text)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, o := range []Options{{}, {Salt: "s"}, {Salt: "s", MinLength: 30}, {Alphabet: "αβγδεζηθικλμνξοπρστυ", MinLength: 40}, {Alphabet: "cCsSfFhHuUiItT01"}} {
		f := newForm(t, o)
		rapid.Check(t, func(t *rapid.T) {
			id := firn.ID(rapid.Int64Range(1, math.MaxInt64).Draw(t, "id"))
			text, err := f.Append(nil, id)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := f.Parse(string(text)); err != nil || back != id {
				t.Fatalf("%d is written %s, which reads as %d, %v", id, text, back, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	f := newForm(t, Options{Salt: "this is my salt", MinLength: 8})
	zero, err := f.codec.EncodeInt64([]int64{0})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, reason string }{
		{"", "the text is empty"},
		{zero, "zero is never issued"},
		{"NV", "it is none with this salt, alphabet and minimal length"}, // of no minimal length
		{"gB0NV05E", "it is none with this salt, alphabet and minimal length"},
		{"gB0NV05-", "it is none with this salt, alphabet and minimal length"},
		{"日本", "it is none with this salt, alphabet and minimal length"},
		{"\xff\xfe\x00", "it is none with this salt, alphabet and minimal length"},
		{strings.Repeat("g", 1<<20), "characters, not 1048576"},
	} {
		id, err := f.Parse(tt.text)
		var syntax *firn.SyntaxError
		if !errors.As(err, &syntax) || !strings.HasSuffix(syntax.Reason, tt.reason) || syntax.Kind != "hashid" {
			t.Errorf("%.20q: %d, %.200v, want %s", tt.text, id, err, tt.reason)
		}
	}
	other := newForm(t, Options{Salt: "this is my pepper", MinLength: 8})
	if id, err := other.Parse("gB0NV05e"); err == nil {
		t.Errorf("with another salt: %d", id)
	}
	for _, id := range []firn.ID{0, -1, math.MinInt64} {
		if b, err := f.Append(nil, id); err == nil {
			t.Errorf("%d is written %s", id, b)
		}
	}
	for _, unset := range []*Form{nil, new(Form)} {
		if b, err := unset.Append(nil, 5); !errors.Is(err, public.ErrNoForm) {
			t.Errorf("%s, %v", b, err)
		}
		if _, err := unset.Parse("NV"); !errors.Is(err, public.ErrNoForm) {
			t.Error(err)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Alphabet: "abc"}, "public/hashids: alphabet must contain at least 16 characters"},
		{Options{Alphabet: "abcdefghijklmnopa"}, "public/hashids: duplicate character in alphabet: a"},
		{Options{Alphabet: "abcdefghijklmno pq"}, "public/hashids: alphabet may not contain spaces"},
		{Options{MinLength: -1}, "public/hashids: a minimal length of -1: it is 0 to 255"},
		{Options{MinLength: 256}, "public/hashids: a minimal length of 256: it is 0 to 255"},
	} {
		if _, err := New(&tt.o); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	forms := []*Form{newForm(f, Options{}), newForm(f, Options{Salt: "this is my salt", MinLength: 8}), newForm(f, Options{Alphabet: "αβγδεζηθικλμνξοπρστυ"})}
	f.Add("NkK9")
	f.Add("gB0NV05e")
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range forms {
			id, err := form.Parse(text)
			if err != nil {
				continue
			}
			if again, err := form.Append(nil, id); id <= 0 || err != nil || string(again) != text {
				t.Errorf("%q reads as %d, which is written %q, %v", text, id, again, err)
			}
		}
	})
}
