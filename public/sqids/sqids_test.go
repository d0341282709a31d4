package sqids

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

// The known answers of the specification's tests.
func TestOfficial(t *testing.T) {
	for _, tt := range []struct {
		o       Options
		numbers []uint64
		text    string
	}{
		{Options{}, []uint64{1}, "Uk"},
		{Options{}, []uint64{2}, "gb"},
		{Options{}, []uint64{3}, "Ef"},
		{Options{}, []uint64{4}, "Vq"},
		{Options{}, []uint64{5}, "uw"},
		{Options{}, []uint64{6}, "OI"},
		{Options{}, []uint64{7}, "AX"},
		{Options{}, []uint64{8}, "p6"},
		{Options{}, []uint64{9}, "nJ"},
		{Options{}, []uint64{4572721}, "JExTR"}, // not aho1e, which is blocked
		{Options{Blocklist: []string{}}, []uint64{4572721}, "aho1e"},
		{Options{Blocklist: []string{"ArUO"}}, []uint64{4572721}, "aho1e"},
		{Options{Blocklist: []string{"ArUO"}}, []uint64{100_000}, "QyG4"},
		{Options{Alphabet: "0123456789abcdef"}, []uint64{1, 2, 3}, "489158"},
		{Options{}, []uint64{1, 2, 3}, "86Rf07"},
		{Options{}, []uint64{0, 0}, "SvIz"},
		{Options{MinLength: 13}, []uint64{1, 2, 3}, "86Rf07xd4zBmi"},
	} {
		f := newForm(t, tt.o)
		if text, err := f.codec.Encode(tt.numbers); err != nil || text != tt.text {
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
		if err != nil || uint64(id) != tt.numbers[0] {
			t.Errorf("%s reads as %d, %v, want %d", tt.text, id, err, tt.numbers[0])
		}
		if text, err := f.Append(nil, id); err != nil || string(text) != tt.text {
			t.Errorf("%d is written %s, %v, want %s", id, text, err, tt.text)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, o := range []Options{{}, {MinLength: 20}, {Alphabet: "abc", Blocklist: []string{}}, {Alphabet: "0123456789abcdef", MinLength: 255}} {
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
	f := newForm(t, Options{})
	long, err := f.codec.Encode([]uint64{math.MaxUint64})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, reason string }{
		{"", "the text is empty"},
		{"bM", "zero is never issued"},
		{"aho1e", "it reads as 4572721, which is written JExTR with this minimal length and these blocked words"},
		{"U-", "it is none with this alphabet"},
		{"Ü", "it is none with this alphabet"},
		{"\xff", "it is none with this alphabet"},
		{long, "above 9223372036854775807"},
		{strings.Repeat("U", 1<<20), "characters, not 1048576"},
	} {
		id, err := f.Parse(tt.text)
		var syntax *firn.SyntaxError
		if !errors.As(err, &syntax) || !strings.HasSuffix(syntax.Reason, tt.reason) || syntax.Kind != "sqid" {
			t.Errorf("%.20q: %d, %.200v, want %s", tt.text, id, err, tt.reason)
		}
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
		if _, err := unset.Parse("Uk"); !errors.Is(err, public.ErrNoForm) {
			t.Error(err)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, tt := range []struct{ alphabet, want string }{
		{"ab", "public/sqids: alphabet length must be at least 3"},
		{"aabc", "public/sqids: alphabet must contain unique characters"},
		{"abcé", "public/sqids: alphabet must not contain any multibyte characters"},
		{"abc\xff", "public/sqids: alphabet must be UTF-8"},
	} {
		if _, err := New(&Options{Alphabet: tt.alphabet}); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	forms := []*Form{newForm(f, Options{}), newForm(f, Options{MinLength: 10}), newForm(f, Options{Alphabet: "abc"})}
	f.Add("Uk")
	f.Add("86Rf07xd4z")
	f.Add("JExTR")
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
