package document

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/dated"
)

func must(t testing.TB, pattern string) *Pattern {
	t.Helper()
	p, err := ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		pattern, period string
		count           int64
		want            string
		id              firn.ID
	}{
		{"INV-{yyyyMMdd}-{6}", "20261120", 42, "INV-20261120-000042", 0},
		{"INV-{yyyyMMdd}-{6}", "20261120", 999999, "INV-20261120-999999", 0},
		{"{yyyyMMdd}{6}", "20261120", 42, "20261120000042", 20261120000042},
		{"{yyyyMM}/{1+}", "202611", 12345, "202611/12345", 0},
		{"{4}/{yyyy}", "2026", 7, "0007/2026", 0},
		{"K{yyDDD}.{3+}.A", "26324", 1000, "K26324.1000.A", 0},
		{"{yyMMdd}{6}", "261120", 42, "261120000042", 261120000042},
		{"{yyMMdd}{6}", "051120", 42, "051120000042", 51120000042},
		{"B{yyyy-MM-dd}/{4}", "20261120", 42, "B2026-11-20/0042", 0},
		{"{yy/MM}.{1+}", "2611", 42, "26/11.42", 0},
		{"{yyMMdd}{HH}{4}", "26112013", 42, "261120130042", 261120130042},
		{"{yyyyMMddHH}{4}", "2026112023", 42, "20261120230042", 20261120230042},
		{"{yyyy-MM-dd}T{HH}#{4}", "2026112000", 42, "2026-11-20T00#0042", 0},
		{"{yyyy-MM-dd HH}#{4}", "2026112000", 42, "2026-11-20 00#0042", 0},
		{"{yyMMdd}{1+}-{HH}", "26112009", 42, "26112042-09", 0},
		{"K{yyDDD}{HH}{2}", "2632409", 42, "K263240942", 0},
		{"{1+}", "", 1, "1", 1},
		{"{1+}", "", 999_999_999_999_999_999, "999999999999999999", 999_999_999_999_999_999},
		{"{6}", "", 42, "000042", 42},
		{"{10}{luhn}", "", 7992739871, "79927398713", 79927398713}, // the example of the standard's annex
		{"№ {6} ő", "", 1, "№ 000001 ő", 0},
		{"{3}{mod97}", "", 794, "79444", 79444}, // the example of ISO 7064
		{"549300{1+}KJTIIGC8Y1R{mod97}", "", 1, "5493001KJTIIGC8Y1R12", 0},
		{"9{17}", "", 1, "900000000000000001", 900_000_000_000_000_001},
		{"9000000000{9}", "", 5, "9000000000000000005", 9_000_000_000_000_000_005},
	} {
		p := must(t, tt.pattern)
		s := p.number(tt.period, tt.count)
		if s.Text != tt.want || s.ID != tt.id {
			t.Errorf("%s: %q, %d; want %q, %d", tt.pattern, s.Text, s.ID, tt.want, tt.id)
		}
		if got, err := p.Parse(tt.want); err != nil || got != s {
			t.Errorf("%s: %q parsed: %+v, %v", tt.pattern, tt.want, got, err)
		}
	}
}

// LEIs that were issued end in MOD 97-10, and card numbers in Luhn.
func TestChecks(t *testing.T) {
	for _, lei := range []string{"5493001KJTIIGC8Y1R12", "213800WSGIIZCXF1P572", "HWUPKR0MPOU8FGXBT394"} {
		if got := fmt.Sprintf("%02d", mod97([]byte(lei[:18]))); got != lei[18:] {
			t.Errorf("%s: %s", lei, got)
		}
	}
	for _, card := range []string{"4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005"} {
		n := len(card) - 1
		if got := luhn([]byte(card[:n])); got != int(card[n]-'0') {
			t.Errorf("%s: %d", card, got)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                        `column 1: a pattern has a counter, such as {6} or {1+}`,
		"INV":                     `column 1: a pattern has a counter`,
		"INV-{yyyyMMdd}":          `a pattern has a counter`,
		"{0}":                     `column 1: a counter has 1 to 18 digits, not 0`,
		"A{19}":                   `column 2: a counter has 1 to 18 digits, not 19`,
		"A{999999999999}":         `column 2: a counter has 1 to 18 digits, not 999999999999`,
		"A{06}":                   `a counter has 1 to 18 digits, not 06`,
		"A{+}":                    `{+} is nothing: a counter is {6} or {1+}`,
		"A{-1}":                   `{-1} is nothing`,
		"A{}":                     `column 2: {} is nothing`,
		"A{6}{6}":                 `column 5: there is a counter already`,
		"A{6}{yyyy}{yyyyMM}":      `column 11: there is a date already`,
		"{luhn}{6}":               `column 1: a check comes after the counter`,
		"{6}{luhn}{yyyy}":         `column 10: a check comes after the date`,
		"{6}{luhn}{mod97}":        `column 10: there is a check already`,
		"{yyyymmdd}{6}":           `{yyyymmdd} is nothing`,
		"{HH}{6}":                 `column 1: {HH} comes behind a date: without one the texts of an hour would come up again each day`,
		"{HH}{yyMMdd}{6}":         `column 1: {HH} comes behind a date`,
		"{yyyyMM}{HH}{6}":         `column 9: {HH} comes once, behind a date with a day and no hour, and that is {yyyyMM}: else the texts of an hour would come up again`,
		"{yyMMddHH}{HH}{6}":       `column 11: {HH} comes once`,
		"{yyMMdd}{HH}{HH}{6}":     `column 13: {HH} comes once`,
		"{yyMMdd}{HH}{yyyy}{6}":   `column 13: there is a date already`,
		"{MMdd}{6}":               `column 1: a date begins with the year, yyyy or yy: without it the texts of {MMdd} would come up again`,
		"{dd/MM/yyyy}{6}":         `a date begins with the year`,
		"{yyyydd}{6}":             `{yyyydd} is no date: behind the year come MM, MMdd, MMddHH or DDD`,
		"{yyyyMMddHHmm}{6}":       `{yyyyMMddHHmm} is nothing`,
		"{yyyy--MM}{6}":           `{yyyy--MM} is nothing`,
		"{-yyyy}{6}":              `{-yyyy} is nothing`,
		"{yyyy-}{6}":              `{yyyy-} is nothing`,
		"{yyyyMMddHH}{9}":         `this could pass`,
		"{yyMMdd}{6}{luhn}{HH}":   `column 18: a check comes after the date`,
		"A{6":                     `column 2: a brace that has no other`,
		"A}6":                     `column 2: a brace that has no other`,
		"A{{6}}":                  `column 2: a brace that has no other`,
		"A\n{6}":                  `column 2: this does not print`,
		"A\xff{6}":                `column 2: this does not print`,
		"{yyyyMMdd}{11}":          `this could pass 9223372036854775807: it has 19 digits`,
		"9300000000{9}":           `this could pass`,
		"{yyyyMMdd}{9+}{mod97}":   `this could pass`,
		"{yyDDD}{1+}":             `with zeros in front the counter has a fixed width`,
		"0{1+}":                   `with zeros in front the counter has a fixed width`,
		strings.Repeat("x", 200):  `column 129: a pattern has at most 128 bytes, not 200`,
		"{6}" + "{yyyyMMdd}{luhn": `column 14: a brace that has no other`,
	} {
		_, err := ParsePattern(pattern)
		var wrong *firn.SyntaxError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", pattern, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ pattern, text, want string }{
		{"INV-{yyyyMMdd}-{6}", "INV-20261120-00042", "column 19: it is too short for INV-{yyyyMMdd}-{6}"},
		{"INV-{yyyyMMdd}-{6}", "INV-20261120-0000042", "column 20: it is too long for"},
		{"INV-{yyyyMMdd}-{6}", "inv-20261120-000042", `column 1: there should be "INV-"`},
		{"INV-{yyyyMMdd}-{6}", "INV-20260229-000042", `column 5: "20260229" is no date {yyyyMMdd}`},
		{"INV-{yyyyMMdd}-{6}", "INV-20261320-000042", "is no date"},
		{"INV-{yyyyMMdd}-{6}", "INV-2026112x-000042", "is no date"},
		{"INV-{yyyyMMdd}-{6}", "INV-00001120-000042", "is no date"},
		{"INV-{yyyyMMdd}-{6}", "INV-20261120-00 042", `column 14: the counter has digits only, not "00 042"`},
		{"INV-{yyyyMMdd}-{6}", "INV-20261120--00042", "digits only"},
		{"INV-{yyyyMMdd}-{6}", "INV-20261120-000000", "column 14: a count is at least 1"},
		{"A{1+}", "A01", "column 2: a counter of more than 1 digits begins with none that is 0"},
		{"A{3+}", "A12", "too short"},
		{"A{1+}", "A9999999999999999999", "column 2: a count is at most 999999999999999999"},
		{"{yyyyMMdd}{4+}", "202611209999999999999", "a count is at most 9999999999"},
		{"{yyDDD}-{1+}", "25366-1", `"25366" is no date {yyDDD}`},
		{"{yyDDD}-{1+}", "26000-1", "is no date"},
		{"{10}{luhn}", "79927398710", "column 11: the check {luhn} is wrong"},
		{"A{6}-{mod97}", "A000042-00", "the check {mod97} is wrong"},
		{"A{6}", "", "too short"},
		{"A{6}B", "A000001C", `column 8: there should be "B"`},
	} {
		_, err := must(t, tt.pattern).Parse(tt.text)
		var wrong *firn.SyntaxError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) || wrong.Kind != "document" {
			t.Errorf("%s: %q: %v, want %s", tt.pattern, tt.text, err, tt.want)
		}
	}
	if _, err := must(t, "{yyDDD}-{1+}").Parse("72366-1"); err != nil { // 2072 is a leap year
		t.Error(err)
	}
}

func TestMax(t *testing.T) {
	for pattern, want := range map[string]int64{
		"{1}": 9, "A{6}": 999_999, "A{18}": 999_999_999_999_999_999, "A{3+}": 999_999_999_999_999_999,
		"{yyyyMMdd}{1+}": 9_999_999_999, "{yyyyMMdd}{10}": 9_999_999_999, "{1+}{luhn}": 99_999_999_999_999_999,
	} {
		if got := must(t, pattern).Max(); got != want {
			t.Errorf("%s: %d, want %d", pattern, got, want)
		}
	}
}

// anyPattern draws a pattern of few letters and digits, so that texts come near
// each other.
func anyPattern(t *rapid.T) *Pattern {
	literal := rapid.StringOfN(rapid.RuneFrom([]rune("120A-")), 0, 3, -1)
	counter := fmt.Sprintf("{%d%s}", rapid.IntRange(1, 4).Draw(t, "width"), rapid.SampledFrom([]string{"", "+"}).Draw(t, "grows"))
	date := rapid.SampledFrom([]string{"", "{yyyyMMdd}", "{yyyyMM}", "{yyyy}", "{yyDDD}", "{yyMMdd}", "{yyyy-MM-dd}", "{yy.MM}", "{yyyyMMddHH}", "{yyMMdd}{HH}", "{yyDDD}-{HH}"}).Draw(t, "date")
	check := rapid.SampledFrom([]string{"", "", "{luhn}", "{mod97}"}).Draw(t, "check")
	a, b := date, counter
	if rapid.Bool().Draw(t, "counter first") {
		a, b = b, a
	}
	text := literal.Draw(t, "a") + a + literal.Draw(t, "b") + b + literal.Draw(t, "c") + check + literal.Draw(t, "d")
	p, err := ParsePattern(text)
	if err != nil {
		t.SkipNow()
	}
	return p
}

// anySerial draws a date and a count near those of others.
func anySerial(t *rapid.T, p *Pattern) (string, int64) {
	r := dated.Rules{Date: p.date, Zone: time.UTC}
	day := time.Date(2000+rapid.IntRange(0, 60).Draw(t, "year"), 1, rapid.IntRange(1, 366).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
	day = day.Add(time.Duration(rapid.IntRange(0, 23).Draw(t, "hour")) * time.Hour)
	return r.Period(day), rapid.Int64Range(1, min(p.max, 99_999)).Draw(t, "count")
}

// A text says what it was made of, as a number too, and no other date or count
// gives it.
func TestTextsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		period, count := anySerial(t, p)
		s := p.number(period, count)
		got, err := p.Parse(s.Text)
		if err != nil || got != s || s.Period != period || s.Count != count {
			t.Fatalf("%s: %+v parsed is %+v, %v", p, s, got, err)
		}
		period2, count2 := anySerial(t, p)
		other := p.number(period2, count2)
		if same := period == period2 && count == count2; (s.Text == other.Text) != same || p.ints && (s.ID == other.ID) != same {
			t.Fatalf("%s: %+v and %+v", p, s, other)
		}
		if p.ints && s.ID <= 0 {
			t.Fatalf("%s: %+v has no number", p, s)
		}
	})
}

// Where a pattern may be changed for another, a text of both is of one date and
// count, which was granted once.
func TestChangesThatAreSafe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	texts := func(p *Pattern) map[string]Number {
		m := map[string]Number{}
		for _, period := range []string{"2026", "2021"} {
			if p.date == nil {
				period = ""
			}
			for c := int64(1); c <= min(p.max, 12_000); c++ {
				s := p.number(period, c)
				m[s.Text] = s
			}
		}
		return m
	}
	safe, met := 0, 0
	pieces := []string{"", "1", "2", "A", "-"}
	piece := func() string { return pieces[rng.IntN(len(pieces))] }
	pattern := func(a, b, c string) *Pattern {
		grows := []string{"", "+"}[rng.IntN(2)]
		p, err := ParsePattern(fmt.Sprintf("%s{yyyy}%s{%d%s}%s", a, b, rng.IntN(5)+1, grows, c))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 60 {
		a, b, c := piece(), piece(), piece()
		p, q := pattern(a, b, c), pattern(a, b, c)
		if rng.IntN(3) == 0 {
			q = pattern(piece(), piece(), piece())
		}
		differ := p.differs(q)
		if differ == "" {
			safe++
		}
		old := texts(p)
		for text, s := range texts(q) {
			if o, ok := old[text]; ok && (o.Count != s.Count || o.Period != s.Period) {
				met++
				if differ == "" {
					t.Fatalf("%s to %s: %+v and %+v", p, q, o, s)
				}
				break
			}
		}
	}
	if safe == 0 || met == 0 {
		t.Errorf("nothing was tried: %d safe, %d met", safe, met)
	}
}

// As numbers texts lose the zeros in front, so the width stays where there may be
// some.
func TestWidthOfNumbers(t *testing.T) {
	narrow, wide := must(t, "{yyDDD}{6}"), must(t, "{yyDDD}{7}")
	if a, b := narrow.number("50011", 5), wide.number("05001", 1000005); a.ID != b.ID {
		t.Fatalf("%d and %d", a.ID, b.ID)
	}
	for _, tt := range []struct {
		a, b string
		safe bool
	}{
		{"{yyDDD}{6}", "{yyDDD}{7}", false},
		{"{yyMMdd}{6}", "{yyMMdd}{7}", false},
		{"{yyyyMMddHH}{4}", "{yyyyMMddHH}{5}", true},
		{"{yyMMdd}{HH}-{4}", "{yyMMddHH}-{4}", false},
		{"{yyyy-MM-dd}{4}", "{yyyyMMdd}{4}", false},
		{"{yyDDD}{6}", "{yyDDD}{6}", true},
		{"{yyDDD}-{6}", "{yyDDD}-{7}", true},
		{"0{6}", "0{7}", false},
		{"{6}{yyDDD}", "{7}{yyDDD}", true},
		{"{yyyyMMdd}{6}", "{yyyyMMdd}{1+}", true},
	} {
		if got := must(t, tt.a).differs(must(t, tt.b)); (got == "") != tt.safe {
			t.Errorf("%s to %s: %q", tt.a, tt.b, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"INV-{yyyyMMdd}-{6}", "{yyDDD}{6}{luhn}x", "{1+}", "a{{", "№{3+}{mod97}", "{yyyy-MM-dd}T{HH}#{4}"} {
		f.Add(s, "INV-20261120-000042")
		f.Add(s, "2026-11-20T00#0042")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			var wrong *firn.SyntaxError
			if !errors.As(err, &wrong) || wrong.Offset < 0 || wrong.Offset > len(pattern) {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		s, err := p.Parse(text)
		if err != nil {
			return
		}
		if again := p.number(s.Period, s.Count); again != s {
			t.Fatalf("%s: %q was parsed as %+v, which is %+v", p, text, s, again)
		}
	})
}
